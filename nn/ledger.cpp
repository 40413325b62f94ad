#include "nn/ledger.h"

#include "nn/part_table.h"

#include <string_view>
#include <vector>

namespace minillm {

namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Elements of a weight that work on one token.
int64_t active_elements(const ModelConfig& config, std::string_view name, const Shape& shape) {
  return contains(name, ".experts.") ? shape.numel() / config.moe_experts * config.moe_top_k : shape.numel();
}

/// A layer's gate on attention: a matrix of its own, or the second half of each head's rows of q_proj. All layers with
/// full attention are alike.
void count_gate(const Transformer& model, Ledger& ledger) {
  for (const NamedTensor& tensor : model.parameters().named_tensors()) {
    const Shape& shape = tensor.value.shape;
    if (contains(tensor.name, ".self_attn.q_proj.weight") || contains(tensor.name, ".self_attn.q_b_proj.weight")) {
      ledger.query_rows = shape[0];
      ledger.gate_parameters = layout_of(model.config()).gated ? shape.numel() / 2 : 0;
    } else if (contains(tensor.name, ".self_attn.gate_proj.weight")) {
      ledger.gate_parameters = shape.numel();
    }
  }
}

}  // namespace

TrainingFlops training_flops(const Transformer& model, int64_t context) {
  const ModelConfig& config = model.config();
  int64_t matrix_elements = config.vocab_size * config.d_model;  // the head, tied or not
  for (const Parameter& parameter : model.parameters().parameters()) {
    const bool is_table = contains(parameter.name, "embed_") || contains(parameter.name, "lm_head");
    if (parameter.shape.rank() >= 2 && !is_table) {
      matrix_elements += active_elements(config, parameter.name, parameter.shape);
    }
  }
  TrainingFlops flops = {.matrices = 6 * matrix_elements};
  const int64_t keys_and_values = config.causal ? context + 1 : 2 * context;
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    const MixerCost cost = mixer_cost(config, layer);
    flops.attention += 6 * cost.score_width * keys_and_values + 18 * cost.state_values;
  }
  return flops;
}

double Ledger::sequence_crossover() const {
  const auto ffn = static_cast<double>(ffn_flops_per_token);
  return score_flops_per_pair == 0 ? 0 : 2 * ffn / static_cast<double>(score_flops_per_pair) - 1;
}

double Ledger::crossover_context() const {
  const auto ffn = static_cast<double>(ffn_flops_per_token);
  return score_flops_per_past == 0 ? 0 : ffn / static_cast<double>(score_flops_per_past);
}

Ledger make_ledger(const Transformer& model, const ReleaseConfig& release) {
  const ModelConfig& config = model.config();
  const std::vector<CountedTensor> tensors = released_tensors(model, release);
  Ledger ledger{count_tensors(tensors)};
  for (const CountedTensor& tensor : tensors) {
    const bool counts = !tensor.is_buffer && group_of(tensor.name).in_text_model;
    ledger.active_parameters += counts ? active_elements(config, tensor.name, tensor.shape) : 0;
  }
  count_gate(model, ledger);
  ledger.flops_per_token = training_flops(model, config.max_seq_len).total();
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    const MixerCost cost = mixer_cost(config, layer);
    ledger.score_flops_per_past += cost.flops_per_past;
    ledger.score_flops_per_pair += 4 * cost.score_width;
    ledger.kv_values_per_token += cost.cached_values;
    ledger.state_values += cost.state_values;
    ledger.recent_values += cost.recent_values;
  }
  const int64_t matrices = get_part(ffn_kinds(), "model.ffn", config.ffn).matrices;
  ledger.ffn_flops_per_token = 2 * matrices * config.d_model * active_ffn_width(config) * config.n_layers;
  return ledger;
}

}  // namespace minillm
