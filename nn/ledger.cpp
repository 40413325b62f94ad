#include "nn/ledger.h"

#include "nn/part_table.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

namespace minillm {

namespace {

/// Where a tensor belongs, by a part of its name; the first that fits counts.
struct GroupRow {
  std::string_view part;
  std::string_view group;
};

constexpr GroupRow groups_by_name[] = {
    {"embed_tokens.", "embed_tokens"},
    {"embed_positions.", "embed_positions"},
    {".self_attn.", "full_attention"},
    {".linear_attn.", "linear_attention"},
    {".mlp.", "ffn"},
    {".attention_residual.", "residual"},
    {".mlp_residual.", "residual"},
    {"model.stream.", "residual"},
    {"lm_head.", "lm_head"},
    {"", "norms"},
};

/// In the order of the data flow.
constexpr std::string_view group_names[] = {"embed_tokens", "embed_positions", "full_attention", "linear_attention",
                                            "ffn",          "residual",        "norms",          "lm_head"};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view group_of(std::string_view name) {
  const GroupRow* row = groups_by_name;
  while (!contains(name, row->part)) {
    ++row;
  }
  return row->group;
}

/// The layer that a tensor's name tells, or -1.
int64_t layer_of(std::string_view name) {
  constexpr std::string_view start = "model.layers.";
  return name.starts_with(start) ? std::atoll(name.data() + start.size()) : -1;
}

/// "3*256*688 + 2*32" from shapes: equal ones, whichever way round, are counted together.
std::string derive_text(const std::vector<Shape>& shapes) {
  std::map<std::vector<int64_t>, int> counts;  // ordered, so the text is stable
  std::vector<std::vector<int64_t>> order;
  for (const Shape& shape : shapes) {
    std::vector<int64_t> extents(shape.begin(), shape.end());
    std::sort(extents.begin(), extents.end());
    if (counts[extents]++ == 0) {
      order.push_back(extents);
    }
  }
  std::string text;
  for (const std::vector<int64_t>& extents : order) {
    const int count = counts[extents];
    std::string product = count > 1 ? std::to_string(count) : "";
    for (int64_t extent : extents) {
      product += (product.empty() ? "" : "*") + std::to_string(extent);
    }
    text += (text.empty() ? "" : " + ") + product;
  }
  return text;
}

/// Elements of a weight that work on one token.
int64_t active_elements(const ModelConfig& config, std::string_view name, const Shape& shape) {
  return contains(name, ".experts.") ? shape.numel() / config.moe_experts * config.moe_top_k : shape.numel();
}

int64_t elements_of(const std::vector<Shape>& shapes) {
  int64_t elements = 0;
  for (const Shape& shape : shapes) {
    elements += shape.numel();
  }
  return elements;
}

/// The tensors that belong to a group, counted.
LedgerGroup make_group(const Transformer& model, std::string_view name) {
  constexpr int64_t no_layer = -1;
  std::map<int64_t, std::vector<Shape>> by_layer;
  LedgerGroup group{.name = name, .derivation = {}};
  for (const NamedTensor& tensor : model.parameters().named_tensors()) {
    if (group_of(tensor.name) == name) {
      by_layer[layer_of(tensor.name)].push_back(tensor.value.shape);
      group.parameters += tensor.value.numel();
    }
  }
  if (by_layer.empty()) {
    return group;
  }
  if (by_layer.size() > 1 && by_layer.count(no_layer) > 0) {
    group.beside = elements_of(by_layer[no_layer]);
    by_layer.erase(no_layer);
  }
  group.units = static_cast<int64_t>(by_layer.size());
  group.per_unit = elements_of(by_layer.begin()->second);
  group.derivation = derive_text(by_layer.begin()->second);
  return group;
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

Ledger make_ledger(const Transformer& model) {
  const ModelConfig& config = model.config();
  Ledger ledger;
  ledger.parameters = model.parameters().count();
  for (std::string_view name : group_names) {
    LedgerGroup group = make_group(model, name);
    group.share = static_cast<double>(group.parameters) / static_cast<double>(ledger.parameters);
    if (group.parameters > 0) {
      ledger.groups.push_back(std::move(group));
    }
  }
  for (const NamedTensor& tensor : model.parameters().named_tensors()) {
    ledger.active_parameters += active_elements(config, tensor.name, tensor.value.shape);
  }
  const int64_t d = config.d_model;
  ledger.classic_estimate = 12 * config.n_layers * d * d + config.vocab_size * d;
  ledger.flops_per_token = training_flops(model, config.max_seq_len).total();
  int64_t score_width = 0;
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    const MixerCost cost = mixer_cost(config, layer);
    score_width += cost.score_width;
    ledger.kv_values_per_token += cost.cached_values;
    ledger.state_values += cost.state_values;
  }
  const int64_t matrices = get_part(ffn_kinds(), "model.ffn", config.ffn).matrices;
  const int64_t ffn = 2 * matrices * d * active_ffn_width(config) * config.n_layers;
  ledger.crossover_context = score_width == 0 ? 0 : static_cast<double>(ffn) / static_cast<double>(4 * score_width);
  return ledger;
}

}  // namespace minillm
