#include "train/memory_estimate.h"

#include "nn/ffn.h"
#include "nn/part_table.h"
#include "train/trainer.h"

namespace minillm {

namespace {

constexpr double logits_in_a_chunk = 1 << 20;  // core/kernels/linear_cross_entropy.cpp

}  // namespace

MemoryEstimate estimate_memory(const Transformer& model, const Config& config) {
  const ModelConfig& c = model.config();
  const double value_bytes = static_cast<double>(size_of(model_dtype(config.train)));
  const double tokens = static_cast<double>(config.train.micro_batch_size) * static_cast<double>(config.data.seq_len);
  const int64_t heads = c.n_heads * c.head_dim;
  const int64_t gates = c.attention_gate == "elementwise" ? heads : 0;
  const int64_t qkv = heads + gates + 2 * c.n_kv_heads * c.head_dim;
  const int64_t inner = c.ffn == "none" ? 0 : c.d_ff;
  const int64_t matrices = get_part(ffn_kinds(), "model.ffn", c.ffn).matrices;
  const int64_t hidden = matrices == 3 ? 2 * inner : inner;
  const int64_t a_layer = (inner > 0 ? 2 : 1) * c.d_model + qkv + heads + hidden;
  const int64_t under_way = hidden + inner + qkv + c.d_model;
  return {.state = 4 * static_cast<double>(model.parameters().count()) * value_bytes,
          .activations = tokens * static_cast<double>(c.n_layers * a_layer) * value_bytes,
          .workspace = (tokens * static_cast<double>(under_way) + logits_in_a_chunk) * value_bytes};
}

}  // namespace minillm
