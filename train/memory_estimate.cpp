#include "train/memory_estimate.h"

#include "core/kernels/linear_cross_entropy.h"
#include "core/kernels/rope.h"
#include "core/memory.h"
#include "core/text.h"
#include "nn/attention.h"
#include "nn/ffn.h"
#include "nn/part_table.h"
#include "train/trainer.h"

#include <algorithm>

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

struct Widths {
  int64_t heads;   ///< n_heads head_dim
  int64_t gates;   ///< those of attention's output
  int64_t qkv;     ///< a row of q|k|v, with gates
  int64_t inner;   ///< of the feed-forward network that works on a token, 0 without one
  int64_t hidden;  ///< what its first matrix writes: gate and up, or up alone
};

Widths widths_of(const ModelConfig& c) {
  Widths w = {};
  w.heads = c.n_heads * c.head_dim;
  w.gates = layout_of(c).gated ? w.heads : 0;
  w.qkv = layout_of(c).width();
  w.inner = active_ffn_width(c);
  w.hidden = get_part(ffn_kinds(), "model.ffn", c.ffn).matrices == 3 ? 2 * w.inner : w.inner;
  return w;
}

/// The layers in which every query meets every key it sees.
int64_t layers_with_scores(const ModelConfig& c) {
  int64_t layers = 0;
  for (int64_t layer = 0; layer < c.n_layers; ++layer) {
    layers += mixer_cost(c, layer).score_width > 0 ? 1 : 0;
  }
  return layers;
}

/// Numbers that composed ops hold beside what backward needs of fused ones: each primitive's result stays, so that it
/// can be looked at. Of a layer with full attention: the scores three times (product, scaled, softmax), where causal
/// once more (masked) and the mask; of a token x^2, x rstd and the result of each norm, slices and transposes of q|k|v,
/// the heads' outputs before they are joined, the parts of rotated pairs, and those of the activation. In backward two
/// gradients of scores stand side by side.
double composed_values(const Config& config) {
  const ModelConfig& c = config.model;
  const Widths w = widths_of(c);
  const int64_t norms = w.inner > 0 ? 2 : 1;
  const int64_t pairs = c.position == "rope" ? kernels::rope_pairs(c.rope_fraction, c.head_dim) : 0;
  const int64_t rotated = pairs > 0 ? 2 * w.qkv + (c.n_heads + c.n_kv_heads) * (8 * pairs + c.head_dim) : 0;
  const int64_t activation = w.hidden > w.inner ? 5 * w.inner : 2 * w.inner;
  const int64_t a_token = norms * 3 * c.d_model + activation;
  const int64_t of_attention = 2 * w.qkv + w.gates + w.heads + rotated;
  const double T = static_cast<double>(config.data.seq_len);
  const double B = static_cast<double>(config.train.micro_batch_size);
  const double scores = B * static_cast<double>(c.n_heads) * T * T;
  const int64_t attending = layers_with_scores(c);
  const double a_layer = c.causal ? 4 * scores + T * T : 3 * scores;
  return static_cast<double>(attending) * a_layer +
         static_cast<double>(c.n_layers * a_token + attending * of_attention) * B * T +
         (attending > 0 ? 2 * scores : 0);
}

/// Bytes of weights that are used and not trained.
double weight_bytes(const Transformer& model, DType dtype) {
  const double values = static_cast<double>(model.parameters().count()) + position_values(model.config());
  return values * static_cast<double>(size_of(dtype));
}

void check_bytes_fit(double bytes, const std::string& what, const std::string& where, const std::string& hint = "") {
  if (bytes > physical_memory()) {
    fail_input({.where = where,
                .what = what + " this machine's memory",
                .found = bytes_text(bytes),
                .expected = "at most " + bytes_text(physical_memory()),
                .hint = hint});
  }
}

/// The values that backward needs, beside what is kept from step to step.
void check_layers_fit(const MemoryEstimate& estimate, const Config& config) {
  const double left = physical_memory() - estimate.kept();
  if (estimate.held() <= left) {
    return;
  }
  const bool is_one = config.train.micro_batch_size == 1;
  std::string hint = is_one ? "a smaller data.seq_len needs less"
                            : "a smaller train.micro_batch_size, a divisor of train.batch_size, gives the same mean";
  if (estimate.activations <= left) {
    hint = "train.ops = \"fused\" keeps no scores and needs " + bytes_text(estimate.activations) + "; " + hint;
  }
  fail_input(
      {.where = is_one ? "data.seq_len" : "train.micro_batch_size",
       .what = "the values of the layers that backward needs do not fit this machine's memory beside the weights",
       .found = fmt::format("{} for {} x {} tokens", bytes_text(estimate.held()), config.train.micro_batch_size,
                            config.data.seq_len),
       .expected = "at most " + bytes_text(left),
       .hint = hint});
}

}  // namespace

MemoryEstimate estimate_memory(const Transformer& model, const Config& config) {
  const ModelConfig& c = model.config();
  const int64_t value_bytes = static_cast<int64_t>(size_of(model_dtype(config.train)));
  const double tokens = static_cast<double>(config.train.micro_batch_size) * static_cast<double>(config.data.seq_len);
  const Widths w = widths_of(c);
  const int64_t sublayers = w.inner > 0 ? 2 : 1;
  int64_t a_token = c.n_layers * (sublayers * stream_count(c) * c.d_model + w.hidden);
  for (int64_t layer = 0; layer < c.n_layers; ++layer) {
    a_token += mixer_cost(c, layer).saved_values;
  }
  const int64_t under_way = w.hidden + w.inner + w.qkv + c.d_model;
  const double bytes = static_cast<double>(value_bytes);
  return {.state = 4 * model.parameters().count() * value_bytes,
          .position_table = position_values(c) * bytes,
          .activations = tokens * static_cast<double>(a_token) * bytes,
          .composed = config.train.ops == "composed" ? composed_values(config) * bytes : 0,
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
  check_layers_fit(estimate, config);
  if (estimate.kept() + estimate.held() + data_bytes > memory) {
    fail_input({.where = "data.seq_len",
                .what = "the tokens do not fit this machine's memory beside the model",
                .found = bytes_text(data_bytes),
                .expected = "at most " + bytes_text(memory - estimate.kept() - estimate.held())});
  }
}

void check_weights_fit(const Transformer& model, DType dtype, const std::string& where) {
  check_bytes_fit(weight_bytes(model, dtype), "the weights do not fit", where);
}

void check_look_fits(const Transformer& model, const Config& config, int64_t tokens, bool with_gradients,
                     const std::string& where) {
  Config look = config;
  look.data.seq_len = tokens;
  look.train.micro_batch_size = 1;
  look.train.ops = "composed";
  const MemoryEstimate estimate = estimate_memory(model, look);
  const double weights = static_cast<double>(estimate.state) / 4;  // gradients and moments are the other three
  const double bytes = (with_gradients ? 2 : 1) * (weights + estimate.held()) + estimate.position_table;
  check_bytes_fit(bytes, fmt::format("every value of a pass over {} tokens does not fit", tokens), where,
                  "a shorter text needs less");
}

void check_import_fits(const Transformer& model, const std::string& where) {
  int64_t largest = 0;
  for (const Tensor& tensor : model.parameters().views({})) {
    largest = std::max(largest, tensor.numel());
  }
  check_bytes_fit(weight_bytes(model, DType::float32) + static_cast<double>(largest) * sizeof(float),
                  "the weights, and the largest tensor beside them to be compared, do not fit", where);
}

}  // namespace minillm
