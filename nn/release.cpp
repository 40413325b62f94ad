#include "nn/release.h"

#include <algorithm>
#include <string_view>

namespace minillm {

namespace {

constexpr int64_t colours = 3;
// Their products, and those with layers, stay within 64 bits.
constexpr int64_t most_vision_size = 100'000;
constexpr int64_t most_pixels = 1024;
constexpr double most_merged_width = 10'000'000;

constexpr StoredType types[] = {{"float32", 4}, {"float64", 8}, {"bfloat16", 2}, {"float16", 2}};

/// Collects tensors under a prefix.
class Collector {
 public:
  Collector(std::vector<CountedTensor>& to, std::string prefix) : to_(to), prefix_(std::move(prefix)) {}

  void add(const std::string& name, const Shape& shape) { to_.push_back({prefix_ + name, shape}); }
  void add_buffer(const std::string& name, const Shape& shape) { to_.push_back({prefix_ + name, shape, true}); }

  void add_with_bias(const std::string& name, const Shape& weight) {
    add(name + ".weight", weight);
    add(name + ".bias", {weight[0]});
  }

 private:
  std::vector<CountedTensor>& to_;
  std::string prefix_;
};

void add_model(const Transformer& model, std::vector<CountedTensor>& to) {
  for (const NamedTensor& tensor : model.parameters().named_tensors()) {
    to.push_back({std::string(tensor.name), tensor.value.shape, tensor.is_buffer});
  }
}

/// What each layer has beside the model's own tensors; of attention where it is full.
void add_to_layers(const ModelConfig& config, const ReleaseConfig& release, std::vector<CountedTensor>& to) {
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    Collector in_layer(to, "model.layers." + std::to_string(layer) + ".");
    if (release.router_bias) {
      in_layer.add("mlp.router.bias", {config.moe_experts});
    }
    if (mixer_cost(config, layer).score_width == 0) {
      continue;
    }
    if (release.qkv_bias) {
      in_layer.add("self_attn.q_proj.bias", {config.n_heads * config.head_dim});
      in_layer.add("self_attn.k_proj.bias", {config.n_kv_heads * config.head_dim});
      in_layer.add("self_attn.v_proj.bias", {config.n_kv_heads * config.head_dim});
    }
    if (release.attention_sinks) {
      in_layer.add("self_attn.sinks", {config.n_heads});
    }
    if (release.causal_masks) {
      in_layer.add_buffer("self_attn.bias", {config.max_seq_len, config.max_seq_len});
    }
  }
}

/// Layers and norms are the model's own, registered once more in a model that has only those.
void add_prediction_modules(const ModelConfig& config, int64_t layers, std::vector<CountedTensor>& to) {
  ModelConfig of_layers = config;
  of_layers.n_layers = layers;
  of_layers.attention = config.attention == "hybrid" ? "full" : config.attention;
  of_layers.final_norm = 1;
  const Transformer model(of_layers);
  constexpr std::string_view root = "model.";
  constexpr std::string_view final_norm = "model.norm.";
  Collector mtp(to, "mtp.");
  mtp.add("fc.weight", {config.d_model, 2 * config.d_model});
  for (const NamedTensor& tensor : model.parameters().named_tensors()) {
    const std::string name(tensor.name);
    if (name.starts_with("model.layers.")) {
      mtp.add(name.substr(root.size()), tensor.value.shape);
    } else if (name.starts_with(final_norm)) {
      const std::string kind = name.substr(final_norm.size());
      mtp.add("pre_fc_norm_embedding." + kind, tensor.value.shape);
      mtp.add("pre_fc_norm_hidden." + kind, tensor.value.shape);
      mtp.add("norm." + kind, tensor.value.shape);
    }
  }
}

void add_vision_tower(const ReleaseConfig& release, int64_t d_model, std::vector<CountedTensor>& to) {
  const int64_t d = release.vision_d_model;
  const int64_t merged = d * release.vision_merge * release.vision_merge;
  Collector tower(to, "model.visual.");
  tower.add_with_bias("patch_embed.proj",
                      {d, colours, release.vision_frames, release.vision_patch, release.vision_patch});
  tower.add("pos_embed.weight", {release.vision_positions, d});
  for (int64_t block = 0; block < release.vision_layers; ++block) {
    const std::string in_block = "blocks." + std::to_string(block) + ".";
    tower.add_with_bias(in_block + "norm1", {d});
    tower.add_with_bias(in_block + "norm2", {d});
    tower.add_with_bias(in_block + "attn.qkv", {3 * d, d});
    tower.add_with_bias(in_block + "attn.proj", {d, d});
    tower.add_with_bias(in_block + "mlp.linear_fc1", {release.vision_d_ff, d});
    tower.add_with_bias(in_block + "mlp.linear_fc2", {d, release.vision_d_ff});
  }
  tower.add_with_bias("merger.norm", {d});
  tower.add_with_bias("merger.linear_fc1", {merged, merged});
  tower.add_with_bias("merger.linear_fc2", {d_model, merged});
}

}  // namespace

std::span<const StoredType> stored_types() {
  return types;
}

int64_t stored_bytes(std::string_view type) {
  const auto row =
      std::find_if(std::begin(types), std::end(types), [&](const StoredType& t) { return t.name == type; });
  check(row != std::end(types), "{} is no number type of weights", type);
  return row->bytes;
}

std::vector<Problem> problems_of(const ReleaseConfig& release, const ModelConfig& model) {
  std::vector<Problem> problems;
  const auto expect = [&](bool ok, std::string key, std::string what, std::string found, std::string expected) {
    if (!ok) {
      problems.push_back({.where = "release." + std::move(key),
                          .what = std::move(what),
                          .found = std::move(found),
                          .expected = std::move(expected)});
    }
  };
  expect(release.mtp_layers >= 0 && release.mtp_layers <= most_layers, "mtp_layers", "is no number of layers",
         std::to_string(release.mtp_layers), fmt::format("an integer in [0, {}]", most_layers));
  expect(!release.router_bias || model.ffn == "moe", "router_bias", "the model has no router", "true",
         "false, or model.ffn = \"moe\"");
  expect(!release.qkv_bias || !model.bias, "qkv_bias", "model.bias gives q, k and v biases already", "true", "false");
  if (release.vision_layers == 0) {
    return problems;
  }
  expect(release.vision_layers >= 0 && release.vision_layers <= most_layers, "vision_layers", "is no number of layers",
         std::to_string(release.vision_layers), fmt::format("an integer in [0, {}]", most_layers));
  struct Size {
    const char* key;
    int64_t value;
    int64_t most;
  };
  for (const Size& size : {Size{"vision_d_model", release.vision_d_model, most_vision_size},
                           Size{"vision_d_ff", release.vision_d_ff, most_vision_size},
                           Size{"vision_positions", release.vision_positions, most_size},
                           Size{"vision_patch", release.vision_patch, most_pixels},
                           Size{"vision_frames", release.vision_frames, most_pixels},
                           Size{"vision_merge", release.vision_merge, most_pixels}}) {
    expect(size.value >= 1 && size.value <= size.most, size.key, "is no size of a vision tower",
           std::to_string(size.value), fmt::format("an integer in [1, {}]", size.most));
  }
  const double merged = static_cast<double>(release.vision_d_model) * static_cast<double>(release.vision_merge) *
                        static_cast<double>(release.vision_merge);
  expect(merged <= most_merged_width, "vision_merge", "merged patches are too wide to be counted",
         fmt::format("{:.3g}", merged), fmt::format("at most {:.0e}", most_merged_width));
  return problems;
}

bool is_for_counting(const ReleaseConfig& release) {
  return release.causal_masks || release.qkv_bias || release.attention_sinks || release.router_bias ||
         release.mtp_layers > 0 || release.vision_layers > 0;
}

std::vector<CountedTensor> released_tensors(const Transformer& model, const ReleaseConfig& release) {
  std::vector<CountedTensor> tensors;
  add_model(model, tensors);
  add_to_layers(model.config(), release, tensors);
  if (release.mtp_layers > 0) {
    add_prediction_modules(model.config(), release.mtp_layers, tensors);
  }
  if (release.vision_layers > 0) {
    add_vision_tower(release, model.config().d_model, tensors);
  }
  return tensors;
}

}  // namespace minillm
