#include "nn/tensor_count.h"

#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <system_error>

namespace minillm {

namespace {

constexpr GroupKind kinds[] = {
    {.name = "embed_tokens"},
    {.name = "embed_positions"},
    {.name = "full_attention", .classic_squares = 4},
    {.name = "linear_attention", .classic_squares = 4},
    {.name = "ffn", .classic_squares = 8},
    {.name = "router"},
    {.name = "residual", .beside = "at both ends"},
    {.name = "norms", .beside = "final"},
    {.name = "lm_head"},
    {.name = "other"},
    {.name = "mtp", .in_text_model = false, .beside = "beside the layer"},
    {.name = "vision", .in_text_model = false, .beside = "beside the blocks"},
};

/// Where a tensor belongs, by a part of its name; the first that fits counts.
struct NameRow {
  std::string_view part;
  std::string_view group;
};

constexpr NameRow groups_by_name[] = {
    {"mtp.", "mtp"},
    {"visual.", "vision"},
    {"vision_tower.", "vision"},
    {"vision_model.", "vision"},
    {"multi_modal_projector.", "vision"},
    {"embed_tokens.", "embed_tokens"},
    {"wte.", "embed_tokens"},
    {"tok_embeddings.", "embed_tokens"},
    {"word_embeddings.", "embed_tokens"},
    {"embed_positions.", "embed_positions"},
    {"wpe.", "embed_positions"},
    {"position_embeddings.", "embed_positions"},
    {".self_attn.", "full_attention"},
    {".attn.", "full_attention"},
    {".attention.", "full_attention"},
    {".linear_attn.", "linear_attention"},
    {".mlp.router.", "router"},
    {".mlp.gate.", "router"},
    {".mlp.shared_expert_gate.", "router"},
    {".block_sparse_moe.gate.", "router"},
    {".mlp.", "ffn"},
    {".block_sparse_moe.", "ffn"},
    {".feed_forward.", "ffn"},
    {".attention_residual.", "residual"},
    {".mlp_residual.", "residual"},
    {"model.stream.", "residual"},
    {"lm_head.", "lm_head"},
    {"norm", "norms"},
    {"ln_", "norms"},
    {"", "other"},
};

constexpr int64_t no_layer = -1;
constexpr int64_t most_layers_of_files = 1'000'000;  // a larger number in a name is no layer's
constexpr double most_elements = 1e17;               // 32 bytes each are still a 64-bit number

int64_t elements_of(const std::vector<Shape>& shapes) {
  int64_t elements = 0;
  for (const Shape& shape : shapes) {
    elements += shape.numel();
  }
  return elements;
}

/// The shapes of a group's parameters, layer by layer.
using ShapesByLayer = std::map<int64_t, std::vector<Shape>>;

/// "3*256*688 + 2*32" from shapes: equal ones, whichever way round, are counted together.
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

TensorGroup make_group(const GroupKind& kind, ShapesByLayer by_layer) {
  TensorGroup group{.kind = &kind, .derivation = {}};
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

/// What each group has beyond its part of 12 L d^2 + V d. Every layer has one mixer, so what is not linear counts as
/// full; of layers without an FFN the item is negative.
void add_classic_estimate(TensorCount& count, const Shape& table, int64_t layers) {
  if (table.rank() != 2 || layers == 0) {
    return;
  }
  const int64_t d = table[1];
  count.classic_estimate = 12 * layers * d * d + table.numel();
  const TensorGroup* linear = count.find("linear_attention");
  const int64_t linear_layers = linear == nullptr ? 0 : linear->units;
  for (const GroupKind& kind : kinds) {
    const TensorGroup* group = count.find(kind.name);
    const int64_t parameters = group == nullptr ? 0 : group->parameters;
    std::string what(kind.name);
    int64_t classic = kind.name == "embed_tokens" ? table.numel() : 0;
    if (kind.classic_squares > 0) {
      what += fmt::format(" beyond {} d^2 a layer", kind.classic_squares);
      const bool is_linear = kind.name == "linear_attention";
      const bool is_full = kind.name == "full_attention";
      const int64_t of_kind = is_linear ? linear_layers : (is_full ? layers - linear_layers : layers);
      classic = kind.classic_squares * d * d * of_kind;
    }
    if (parameters != classic) {
      count.gap_items.push_back({std::move(what), parameters - classic});
    }
  }
}

}  // namespace

std::span<const GroupKind> group_kinds() {
  return kinds;
}

const GroupKind& group_of(std::string_view tensor) {
  const NameRow* row = groups_by_name;
  while (tensor.find(row->part) == std::string_view::npos) {
    ++row;
  }
  return *std::find_if(std::begin(kinds), std::end(kinds),
                       [&](const GroupKind& kind) { return kind.name == row->group; });
}

int64_t layer_of(std::string_view name) {
  while (!name.empty()) {
    const std::string_view component = name.substr(0, name.find('.'));
    int64_t layer = 0;
    const char* end = component.data() + component.size();
    const std::from_chars_result read = std::from_chars(component.data(), end, layer);
    if (read.ec == std::errc() && read.ptr == end && layer >= 0 && layer < most_layers_of_files) {
      return layer;
    }
    name.remove_prefix(std::min(name.size(), component.size() + 1));
  }
  return no_layer;
}

const TensorGroup* TensorCount::find(std::string_view group) const {
  for (const TensorGroup& entry : groups) {
    if (entry.name() == group) {
      return &entry;
    }
  }
  return nullptr;
}

TensorCount count_tensors(std::span<const CountedTensor> tensors) {
  TensorCount count;
  std::map<const GroupKind*, ShapesByLayer> by_group;
  Shape table;
  int64_t layers = 0;
  double elements = 0;
  for (const CountedTensor& tensor : tensors) {
    ++count.tensors;
    elements += static_cast<double>(tensor.shape.numel());
    check(elements <= most_elements, "more than {:.0e} elements, with {}: too many to be counted", most_elements,
          tensor.name);
    if (tensor.is_buffer) {
      count.buffers += tensor.shape.numel();
      continue;
    }
    const GroupKind& kind = group_of(tensor.name);
    const int64_t layer = layer_of(tensor.name);
    by_group[&kind][layer].push_back(tensor.shape);
    if (kind.name == "embed_tokens") {
      table = tensor.shape;
    }
    if (kind.in_text_model) {
      layers = std::max(layers, layer + 1);
    }
  }
  for (auto& [kind, shapes] : by_group) {  // the table's order: pointers into it
    count.groups.push_back(make_group(*kind, std::move(shapes)));
    count.parameters += count.groups.back().parameters;
    count.text_parameters += kind->in_text_model ? count.groups.back().parameters : 0;
  }
  for (TensorGroup& group : count.groups) {
    const auto parameters = static_cast<double>(group.parameters);
    group.share = parameters / static_cast<double>(std::max<int64_t>(1, count.parameters));
    group.text_share =
        group.kind->in_text_model ? parameters / static_cast<double>(std::max<int64_t>(1, count.text_parameters)) : 0;
  }
  add_classic_estimate(count, table, layers);
  return count;
}

}  // namespace minillm
