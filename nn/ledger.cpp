#include "nn/ledger.h"

#include "nn/part_table.h"

#include <algorithm>
#include <map>
#include <string>

namespace minillm {

namespace {

constexpr std::string_view group_names[] = {"embed_tokens", "embed_positions", "full_attention",
                                            "ffn",          "norms",           "lm_head"};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view group_of(std::string_view name) {
  if (contains(name, ".self_attn.")) {
    return "full_attention";
  }
  if (contains(name, ".mlp.")) {
    return "ffn";
  }
  if (contains(name, "embed_tokens.")) {
    return "embed_tokens";
  }
  if (contains(name, "embed_positions.")) {
    return "embed_positions";
  }
  return contains(name, "lm_head.") ? "lm_head" : "norms";
}

bool is_final_norm(std::string_view name) {
  return name.starts_with("model.norm.");
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

int64_t head_width(const ModelConfig& config) {
  return config.n_heads * config.head_dim;
}

}  // namespace

TrainingFlops training_flops(const Transformer& model, int64_t context) {
  const ModelConfig& config = model.config();
  int64_t matrix_elements = config.vocab_size * config.d_model;  // the head, tied or not
  for (const Parameter& parameter : model.parameters().parameters()) {
    const bool is_table = contains(parameter.name, "embed_") || contains(parameter.name, "lm_head");
    if (parameter.shape.rank() == 2 && !is_table) {
      matrix_elements += parameter.numel();
    }
  }
  return {.matrices = 6 * matrix_elements, .attention = 6 * config.n_layers * head_width(config) * (context + 1)};
}

Ledger make_ledger(const Transformer& model) {
  const ModelConfig& config = model.config();
  Ledger ledger;
  ledger.parameters = model.parameters().count();
  for (std::string_view group_name : group_names) {
    LedgerGroup group{.name = group_name, .derivation = {}};
    const bool per_layer = group_name == "full_attention" || group_name == "ffn" || group_name == "norms";
    group.units = per_layer ? config.n_layers : 1;
    std::vector<Shape> unit_shapes;
    for (const NamedTensor& tensor : model.parameters().named_tensors()) {
      if (group_of(tensor.name) != group_name) {
        continue;
      }
      const int64_t elements = tensor.value.numel();
      group.parameters += elements;
      if (is_final_norm(tensor.name)) {
        ledger.final_norm += elements;
      } else if (!per_layer || contains(tensor.name, ".layers.0.")) {
        group.per_unit += elements;
        unit_shapes.push_back(tensor.value.shape);
      }
    }
    group.share = static_cast<double>(group.parameters) / static_cast<double>(ledger.parameters);
    group.derivation = derive_text(unit_shapes);
    if (group.parameters > 0) {
      ledger.groups.push_back(std::move(group));
    }
  }
  const int64_t d = config.d_model;
  ledger.classic_estimate = 12 * config.n_layers * d * d + config.vocab_size * d;
  ledger.flops_per_token = training_flops(model, config.max_seq_len).total();
  const int64_t ffn_matrices = get_part(ffn_kinds(), "model.ffn", config.ffn).matrices;
  ledger.crossover_context =
      static_cast<double>(2 * ffn_matrices * d * config.d_ff) / static_cast<double>(4 * head_width(config));
  ledger.kv_values_per_token = 2 * config.n_layers * config.n_kv_heads * config.head_dim;
  return ledger;
}

}  // namespace minillm
