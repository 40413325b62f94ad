#include "train/memory_estimate.h"

#include "core/kernels/linear_cross_entropy.h"
#include "core/kernels/rope.h"
#include "core/memory.h"
#include "core/text.h"
#include "nn/ffn.h"
#include "nn/part_table.h"
#include "train/trainer.h"

namespace minillm {

namespace {

/// Numbers that the loss holds at once: a chunk of logits where the fused kernel runs, else all of them.
double logits_at_once(const Config& config) {
  const TrainConfig& train = config.train;
  const int64_t tokens = train.micro_batch_size * config.data.seq_len;
  const int64_t V = config.model.vocab_size;
  const bool is_fused = train.ops == "fused" && train.kernels == "fast" && train.dtype == "float32";
  return is_fused ? static_cast<double>(kernels::linear_cross_entropy_scratch(tokens, V))
                  : static_cast<double>(tokens) * static_cast<double>(V);
}

/// Numbers in the table that positions are read from: cosines and sines. Learned ones are weights.
double position_values(const ModelConfig& c) {
  const int64_t pairs = c.position == "rope" ? kernels::rope_pairs(c.rope_fraction, c.head_dim) : 0;
  const int64_t width = c.position == "sinusoidal" ? c.d_model : 2 * pairs;
  return static_cast<double>(c.max_seq_len) * static_cast<double>(width);
}

}  // namespace

MemoryEstimate estimate_memory(const Transformer& model, const Config& config) {
  const ModelConfig& c = model.config();
  const int64_t value_bytes = static_cast<int64_t>(size_of(model_dtype(config.train)));
  const double tokens = static_cast<double>(config.train.micro_batch_size) * static_cast<double>(config.data.seq_len);
  const int64_t heads = c.n_heads * c.head_dim;
  const int64_t gates = c.attention_gate == "elementwise" ? heads : 0;
  const int64_t qkv = heads + gates + 2 * c.n_kv_heads * c.head_dim;
  const int64_t inner = c.ffn == "none" ? 0 : c.d_ff;
  const int64_t matrices = get_part(ffn_kinds(), "model.ffn", c.ffn).matrices;
  const int64_t hidden = matrices == 3 ? 2 * inner : inner;
  const int64_t a_layer = (inner > 0 ? 2 : 1) * c.d_model + qkv + heads + hidden;
  const int64_t under_way = hidden + inner + qkv + c.d_model;
  const double bytes = static_cast<double>(value_bytes);
  return {.state = 4 * model.parameters().count() * value_bytes,
          .position_table = position_values(c) * bytes,
          .activations = tokens * static_cast<double>(c.n_layers * a_layer) * bytes,
          .workspace = (tokens * static_cast<double>(under_way) + logits_at_once(config)) * bytes};
}

void check_training_fits(const Transformer& model, const Config& config, double data_bytes) {
  const MemoryEstimate estimate = estimate_memory(model, config);
  const double memory = physical_memory();
  if (estimate.kept() > memory) {
    const bool is_table = estimate.position_table > static_cast<double>(estimate.state);
    fail_input({.where = "[model]",
                .what = "weights, gradients, the optimizer's two moments and the table of positions do not fit this "
                        "machine's memory",
                .found = bytes_text(estimate.kept()),
                .expected = "at most " + bytes_text(memory),
                .hint = is_table ? "a smaller data.seq_len or model.max_seq_len makes the table smaller"
                                 : "minillm check shows which part is how large"});
  }
  if (estimate.kept() + estimate.activations > memory) {
    const bool is_one = config.train.micro_batch_size == 1;
    fail_input(
        {.where = is_one ? "data.seq_len" : "train.micro_batch_size",
         .what = "the values of the layers that backward needs do not fit this machine's memory beside the weights",
         .found = fmt::format("{} for {} x {} tokens", bytes_text(estimate.activations), config.train.micro_batch_size,
                              config.data.seq_len),
         .expected = "at most " + bytes_text(memory - estimate.kept()),
         .hint = is_one ? "a smaller data.seq_len needs less"
                        : "a smaller train.micro_batch_size, a divisor of train.batch_size, gives the same mean"});
  }
  if (estimate.kept() + estimate.activations + data_bytes > memory) {
    fail_input({.where = "data.seq_len",
                .what = "the tokens do not fit this machine's memory beside the model",
                .found = bytes_text(data_bytes),
                .expected = "at most " + bytes_text(memory - estimate.kept() - estimate.activations)});
  }
}

void check_weights_fit(const Transformer& model, DType dtype, const std::string& where) {
  const double values = static_cast<double>(model.parameters().count()) + position_values(model.config());
  const double bytes = values * static_cast<double>(size_of(dtype));
  if (bytes > physical_memory()) {
    fail_input({.where = where,
                .what = "the weights do not fit this machine's memory",
                .found = bytes_text(bytes),
                .expected = "at most " + bytes_text(physical_memory())});
  }
}

}  // namespace minillm
