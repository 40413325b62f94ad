#include "nn/transformer.h"

#include "nn/init.h"

namespace minillm {

Transformer::Transformer(const ModelConfig& config) : Transformer(config, std::make_unique<ParameterStore>()) {}

Transformer::Transformer(const ModelConfig& config, std::unique_ptr<ParameterStore> store)
    : Module(Scope(*store, "model")),
      config_(config),
      store_(std::move(store)),
      embed_tokens_(store_->declare("model.embed_tokens.weight", {config.vocab_size, config.d_model}, matrix_init())),
      embed_positions_(config, Scope(*store_, "model.embed_positions")),
      rope_(config),
      ends_(make_stream_ends(config, Scope(*store_, "model.stream"))) {
  const Scope model(*store_, "model");
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    layers_.push_back(std::make_unique<Block>(config, model / fmt::format("layers.{}", layer), rope_, layer));
  }
  if (config.final_norm != 0) {
    norm_ = make_norm(config, model / "norm", config.d_model);
  }
  if (!config.tie_embeddings) {
    lm_head_ = &store_->declare("lm_head.weight", {config.vocab_size, config.d_model}, matrix_init());
  }
}

void Transformer::allocate(DType dtype, uint64_t seed, bool with_gradients) {
  store_->allocate(dtype, with_gradients);
  store_->initialize(seed);
  embed_positions_.allocate(dtype);
  rope_.allocate(dtype);
}

Var Transformer::forward(Tape& tape, const Batch& batch) const {
  return loss(hidden(tape, batch.inputs, batch.batch_size), batch.targets);
}

Var Transformer::loss(Var x, std::span<const int32_t> targets) const {
  const auto scope = x.tape().enter("lm_head");
  const int64_t rows = x.shape()[0] * x.shape()[1];
  return linear_cross_entropy(reshape(x, {rows, config_.d_model}), x.tape().parameter(head()), targets);
}

Var Transformer::logits(Tape& tape, std::span<const int32_t> ids, int64_t batch_size) const {
  Var x = hidden(tape, ids, batch_size);
  const auto scope = tape.enter("lm_head");
  return linear(x, tape.parameter(head()));
}

Var Transformer::next_logits(Tape& tape, std::span<const int32_t> ids, int64_t batch_size) const {
  Var x = hidden(tape, ids, batch_size);  // [B, T, d]
  const int64_t T = x.shape()[1];
  const auto scope = tape.enter("lm_head");
  Var last = reshape(slice(x, 1, T - 1, T), {batch_size, config_.d_model});
  return linear(last, tape.parameter(head()));
}

Stream Transformer::enter(Tape& tape, std::span<const int32_t> ids, int64_t batch_size) const {
  check(batch_size >= 1, "a batch has at least 1 sequence, found {}", batch_size);
  const int64_t T = static_cast<int64_t>(ids.size()) / batch_size;
  int64_t first = 0;
  for (const Past* past : tape.options().pasts) {
    first = std::max(first, past->positions());
  }
  check(batch_size * T == static_cast<int64_t>(ids.size()) && T >= 1 && first + T <= config_.max_seq_len,
        "{} token ids in {} sequences behind {} positions do not fit a model of at most {} positions", ids.size(),
        batch_size, first, config_.max_seq_len);
  check(!tape.reads_on() || (tape.options().pasts.size() == static_cast<size_t>(batch_size) && !tape.options().record),
        "{} sequences are read on from {} pasts, and without gradients", batch_size, tape.options().pasts.size());
  Var x = embedding(tape.parameter(embed_tokens_), ids);
  x = reshape(x, {batch_size, T, config_.d_model});
  x = embed_positions_.add_to(x);
  x = dropout(x, config_.dropout, "model.embed_tokens");
  return ends_->enter(x);
}

Var Transformer::hidden(Tape& tape, std::span<const int32_t> ids, int64_t batch_size) const {
  const auto scope = tape.enter(path());
  Stream stream = enter(tape, ids, batch_size);
  for (const auto& layer : layers_) {
    // Without backward, nor is the input needed.
    const NodeId first = tape.options().record ? tape.size() : stream.x.id();
    layer->forward(stream);
    tape.release_unsaved(first, stream.x, stream.writes);
  }
  for (Past* past : tape.options().pasts) {
    past->advance(stream.x.shape()[1]);
  }
  return final_norm(ends_->leave(stream));
}

Trace Transformer::trace(Tape& tape, std::span<const int32_t> ids, int64_t batch_size) const {
  check(tape.options().retain, "streams are read later, so their tape must retain values");
  const auto scope = tape.enter(path());
  Stream stream = enter(tape, ids, batch_size);
  Trace seen;
  const auto note = [&] {
    seen.streams.push_back(ends_->leave(stream));
    seen.states.push_back(stream.writes.empty() ? stream.x : Var());
  };
  note();
  for (const auto& layer : layers_) {
    layer->forward(stream);
    note();
  }
  seen.hidden = final_norm(seen.streams.back());
  return seen;
}

}  // namespace minillm
