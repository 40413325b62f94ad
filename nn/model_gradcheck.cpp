#include "nn/model_gradcheck.h"

#include "nn/transformer.h"

#include <algorithm>
#include <limits>

namespace minillm {

namespace {

constexpr int64_t sequences = 2;

Batch random_batch(const ModelConfig& config, uint64_t seed) {
  Batch batch;
  batch.batch_size = sequences;
  batch.seq_len = config.max_seq_len;
  RandomStream stream(random_key(seed, "gradcheck tokens"));
  const uint64_t vocab = static_cast<uint64_t>(config.vocab_size);
  for (int64_t i = 0; i < batch.tokens(); ++i) {
    batch.inputs.push_back(static_cast<int32_t>(stream.below(vocab)));
    batch.targets.push_back(static_cast<int32_t>(stream.below(vocab)));
  }
  return batch;
}

/// Moves every weight away from its start, so that gains differ, biases count and no gradient is tiny.
void randomize(ParameterStore& store, uint64_t seed) {
  for (const NamedTensor& tensor : store.named_tensors()) {
    RandomStream stream(random_key(seed, "gradcheck weights", tensor.name));
    double* values = tensor.value.as<double>();
    for (int64_t i = 0; i < tensor.value.numel(); ++i) {
      values[i] += 0.3 * stream.normal();
    }
  }
}

double distance_to_kink(Tape& tape) {
  double nearest = std::numeric_limits<double>::infinity();
  for (NodeId id = 0; id < tape.size(); ++id) {
    nearest = std::min(nearest, tape.node(id).distance_to_kink(tape));
  }
  return nearest;
}

}  // namespace

ModelConfig shrink_for_gradcheck(ModelConfig config) {
  const int64_t heads_per_kv = config.n_heads / config.n_kv_heads;
  const int64_t group = std::min<int64_t>(heads_per_kv, 2);
  config.n_kv_heads = config.n_kv_heads > 1 ? 2 : 1;
  config.n_heads = config.n_kv_heads * group;
  config.head_dim = std::min<int64_t>(config.head_dim, 8);
  config.d_model = config.n_heads * config.head_dim + 2;  // differs from the heads' width: catches mixed-up sizes
  config.d_ff = std::min<int64_t>(config.d_ff, 24);
  config.n_layers = std::min<int64_t>(config.n_layers, 2);
  config.vocab_size = std::min<int64_t>(config.vocab_size, 31);
  config.max_seq_len = std::min<int64_t>(config.max_seq_len, 8);
  config.dropout = 0;
  config.mla_q_rank = std::min<int64_t>(config.mla_q_rank, 5);
  config.mla_kv_rank = std::min<int64_t>(config.mla_kv_rank, 6);
  const int64_t value_heads_per_key =
      config.gdn_key_heads == 0 ? 0 : std::min<int64_t>(2, config.gdn_value_heads / config.gdn_key_heads);
  config.gdn_key_heads = std::min<int64_t>(config.gdn_key_heads, 2);
  config.gdn_value_heads = config.gdn_key_heads * value_heads_per_key;
  config.gdn_key_dim = std::min<int64_t>(config.gdn_key_dim, 5);
  config.gdn_value_dim = std::min<int64_t>(config.gdn_value_dim, 3);
  config.moe_experts = std::min<int64_t>(config.moe_experts, 4);
  config.moe_top_k = std::min(config.moe_top_k, config.moe_experts);
  config.moe_shared_d_ff = std::min<int64_t>(config.moe_shared_d_ff, 7);
  config.residual_rank = std::min<int64_t>(config.residual_rank, 5);
  return config;
}

std::vector<GradcheckResult> gradcheck_model(const ModelConfig& config, const TapeOptions& tape_options,
                                             const GradcheckOptions& options) {
  const double safe_distance = 10 * options.step;
  Transformer model(config);
  Tape tape(tape_options);
  TapeOptions keep_values = tape_options;
  keep_values.retain = true;
  Tape look(keep_values);
  Batch batch;
  for (uint64_t seed = options.seed;; ++seed) {
    check(seed < options.seed + 100, "no batch keeps all inputs {} away from kinks", safe_distance);
    if (!model.parameters().allocated()) {
      model.allocate(DType::float64, seed);
    }
    randomize(model.parameters(), seed);
    batch = random_batch(config, seed);
    look.clear();
    model.forward(look, batch);
    if (distance_to_kink(look) > safe_distance) {
      break;
    }
  }
  model.parameters().zero_gradients();
  tape.backward(model.forward(tape, batch));
  model.parameters().finish_gradients();

  std::vector<GradcheckTensor> tensors;
  for (const NamedTensor& tensor : model.parameters().named_tensors()) {
    if (!tensor.is_buffer) {
      tensors.push_back({std::string(tensor.name), tensor.value, tensor.grad});
    }
  }
  TapeOptions forward_only = tape_options;
  forward_only.record = false;
  Tape probe(forward_only);
  return gradcheck(
      tensors,
      [&] {
        probe.clear();
        return model.forward(probe, batch).item();
      },
      options);
}

}  // namespace minillm
