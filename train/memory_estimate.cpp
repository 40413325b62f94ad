#include "train/memory_estimate.h"

#include "core/kernels/linear_cross_entropy.h"
#include "core/kernels/rope.h"
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
  const int64_t pairs = c.position == "rope" ? kernels::rope_pairs(c.rope_fraction, c.head_dim) : 0;
  const double bytes = static_cast<double>(value_bytes);
  return {.state = 4 * model.parameters().count() * value_bytes,
          .rotary_table = 2 * static_cast<double>(c.max_seq_len) * static_cast<double>(pairs) * bytes,
          .activations = tokens * static_cast<double>(c.n_layers * a_layer) * bytes,
          .workspace = (tokens * static_cast<double>(under_way) + logits_at_once(config)) * bytes};
}

}  // namespace minillm
