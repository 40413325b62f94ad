#include "nn/tensor_count.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace minillm {

namespace {

/// Where a tensor belongs, by a part of its name; the first that fits counts.
struct GroupRow {
  std::string_view part;
  std::string_view group;
};

constexpr GroupRow groups_by_name[] = {
    {"mtp.", "mtp"},
    {"visual.", "vision"},
    {"vision_tower.", "vision"},
    {"vision_model.", "vision"},
    {"multi_modal_projector.", "vision"},
    {"embed_tokens.", "embed_tokens"},
    {"wte.", "embed_tokens"},
    {"embed_positions.", "embed_positions"},
    {"wpe.", "embed_positions"},
    {".self_attn.", "full_attention"},
    {".attn.", "full_attention"},
    {".linear_attn.", "linear_attention"},
    {".mlp.", "ffn"},
    {".block_sparse_moe.", "ffn"},
    {".attention_residual.", "residual"},
    {".mlp_residual.", "residual"},
    {"model.stream.", "residual"},
    {"lm_head.", "lm_head"},
    {"", "norms"},
};

constexpr std::string_view names[] = {"embed_tokens", "embed_positions", "full_attention", "linear_attention",
                                      "ffn",          "residual",        "norms",          "lm_head",
                                      "mtp",          "vision"};

std::string_view group_of(std::string_view name) {
  const GroupRow* row = groups_by_name;
  while (name.find(row->part) == std::string_view::npos) {
    ++row;
  }
  return row->group;
}

constexpr int64_t no_layer = -1;

/// The layer that a tensor's name tells, its first component that is a number: "model.layers.3.mlp", "h.3.attn".
int64_t layer_of(std::string_view name) {
  while (!name.empty()) {
    const std::string_view component = name.substr(0, name.find('.'));
    int64_t layer = 0;
    const char* end = component.data() + component.size();
    const std::from_chars_result read = std::from_chars(component.data(), end, layer);
    if (read.ec == std::errc() && read.ptr == end && layer >= 0) {
      return layer;
    }
    name.remove_prefix(std::min(name.size(), component.size() + 1));
  }
  return no_layer;
}

int64_t elements_of(const std::vector<Shape>& shapes) {
  int64_t elements = 0;
  for (const Shape& shape : shapes) {
    elements += shape.numel();
  }
  return elements;
}

/// The shapes of a group's parameters, layer by layer.
using ShapesByLayer = std::map<int64_t, std::vector<Shape>>;

TensorGroup make_group(std::string_view name, ShapesByLayer by_layer) {
  TensorGroup group{.name = name, .in_text_model = name != "mtp" && name != "vision", .derivation = {}};
  for (const auto& [layer, shapes] : by_layer) {
    group.parameters += elements_of(shapes);
  }
  if (by_layer.size() > 1) {
    by_layer.erase(no_layer);
  }
  group.units = static_cast<int64_t>(by_layer.size());
  group.per_unit = elements_of(by_layer.begin()->second);
  group.beside = group.parameters - group.per_unit * group.units;
  group.derivation = derivation_of(by_layer.begin()->second);
  return group;
}

/// What each group has beyond its part of 12 L d^2 + V d. Every layer has one mixer; the parts of layers without an
/// FFN, and of a missing table, are negative.
void add_classic_estimate(TensorCount& count, const Shape& table, int64_t layers) {
  if (table.rank() != 2 || layers == 0) {
    return;
  }
  const int64_t d = table[1];
  count.classic_estimate = 12 * layers * d * d + table.numel();
  const auto parameters_of = [&](std::string_view name) {
    const TensorGroup* group = count.find(name);
    return group == nullptr ? 0 : group->parameters;
  };
  const TensorGroup* linear = count.find("linear_attention");
  const int64_t linear_layers = linear == nullptr ? 0 : linear->units;
  const auto add = [&](std::string what, int64_t parameters) {
    if (parameters != 0) {
      count.gap_items.push_back({std::move(what), parameters});
    }
  };
  add("full_attention beyond 4 d^2 a layer", parameters_of("full_attention") - 4 * d * d * (layers - linear_layers));
  add("linear_attention beyond 4 d^2 a layer", parameters_of("linear_attention") - 4 * d * d * linear_layers);
  add("ffn beyond 8 d^2 a layer", parameters_of("ffn") - 8 * d * d * layers);
  add("embed_tokens beyond V d", parameters_of("embed_tokens") - table.numel());
  for (std::string_view name : {"embed_positions", "residual", "norms", "lm_head", "mtp", "vision"}) {
    add(std::string(name), parameters_of(name));
  }
}

}  // namespace

std::string derivation_of(const std::vector<Shape>& shapes) {
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

std::span<const std::string_view> group_names() {
  return names;
}

const TensorGroup* TensorCount::find(std::string_view group) const {
  for (const TensorGroup& entry : groups) {
    if (entry.name == group) {
      return &entry;
    }
  }
  return nullptr;
}

TensorCount count_tensors(std::span<const CountedTensor> tensors) {
  TensorCount count;
  std::map<std::string_view, ShapesByLayer> by_group;
  Shape table;
  int64_t layers = 0;
  for (const CountedTensor& tensor : tensors) {
    ++count.tensors;
    if (tensor.is_buffer) {
      count.buffers += tensor.shape.numel();
      continue;
    }
    const std::string_view group = group_of(tensor.name);
    const int64_t layer = layer_of(tensor.name);
    by_group[group][layer].push_back(tensor.shape);
    if (group == "embed_tokens") {
      table = tensor.shape;
    }
    if (group != "mtp" && group != "vision") {
      layers = std::max(layers, layer + 1);
    }
  }
  for (std::string_view name : names) {
    const auto shapes = by_group.find(name);
    if (shapes != by_group.end()) {
      count.groups.push_back(make_group(name, shapes->second));
      count.parameters += count.groups.back().parameters;
      count.text_parameters += count.groups.back().in_text_model ? count.groups.back().parameters : 0;
    }
  }
  for (TensorGroup& group : count.groups) {
    const auto parameters = static_cast<double>(group.parameters);
    group.share = parameters / static_cast<double>(count.parameters);
    group.text_share = group.in_text_model ? parameters / static_cast<double>(count.text_parameters) : 0;
  }
  add_classic_estimate(count, table, layers);
  return count;
}

}  // namespace minillm
