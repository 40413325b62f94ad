#include "generate/decoder.h"

#include "core/error.h"

#include <algorithm>

namespace minillm {

namespace {

TapeOptions for_reading(TapeOptions options, const std::optional<DecodingWeights>& weights) {
  options.record = false;
  options.training = false;
  options.decoding = weights ? &*weights : options.decoding;
  return options;
}

std::optional<DecodingWeights> own_weights(const Transformer& model, const TapeOptions& options) {
  const bool uses_them = options.kernels == Kernels::fast && options.ops == Ops::fused;
  if (options.decoding != nullptr || !uses_them || model.parameters().weights().dtype != DType::float32) {
    return std::nullopt;
  }
  return DecodingWeights(model.parameters(), kernels::DecodingType::float32);
}

}  // namespace

void check_writes_text(const Transformer& model) {
  if (!model.config().causal) {
    fail_input({.where = "model.causal",
                .what = "a model that was trained to see the tokens behind a position cannot write the next one",
                .found = "false",
                .expected = "a model with causal = true"});
  }
}

Decoder::Decoder(const Transformer& model, TapeOptions options)
    : model_(model), weights_(own_weights(model, options)), tape_(for_reading(options, weights_)) {
  check_writes_text(model);
}

Decoder::Decoder(const Transformer& model, int64_t capacity, TapeOptions options) : Decoder(model, options) {
  add_sequence(capacity);
}

size_t Decoder::add_sequence(int64_t capacity) {
  pasts_.emplace_back(std::min(capacity, model_.config().max_seq_len));
  return pasts_.size() - 1;
}

int64_t Decoder::room(size_t sequence) const {
  return pasts_[sequence].capacity() - pasts_[sequence].positions();
}

Tensor Decoder::read(std::span<const int32_t> ids, size_t sequence) {
  reading_.assign(1, &pasts_[sequence]);
  tape_.clear();
  tape_.set_pasts(reading_);
  return model_.next_logits(tape_, ids).value();
}

Tensor Decoder::read_one_each(std::span<const size_t> sequences, std::span<const int32_t> ids) {
  check(sequences.size() == ids.size(), "{} sequences read {} tokens, not one each", sequences.size(), ids.size());
  reading_.clear();
  for (const size_t sequence : sequences) {
    reading_.push_back(&pasts_[sequence]);
  }
  tape_.clear();
  tape_.set_pasts(reading_);
  return model_.next_logits(tape_, ids, static_cast<int64_t>(ids.size())).value();
}

void Decoder::clear() {
  for (Past& past : pasts_) {
    past.clear();
  }
}

}  // namespace minillm
