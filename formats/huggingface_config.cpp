#include "formats/huggingface_config.h"

#include "core/text.h"
#include "data/file_descriptor.h"
#include "data/strict_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace minillm {

namespace {

using Json = nlohmann::json;

constexpr JsonKind config_kind = {.subject = "", .most_depth = 16, .deeper_than = "a config.json is"};

/// An object of the file whose values are read by name and checked.
class Fields {
 public:
  Fields(const Json& object, const std::string& path) : object_(object), path_(path) {}

  bool has(const char* key) const { return object_.contains(key) && !object_[key].is_null(); }

  /// A whole number from 1 on.
  int64_t count(const char* key) const {
    if (!has(key)) {
      fail(key, "is missing", "", "a whole number from 1");
    }
    return read_count(key, 1);
  }

  /// The same, or `fallback` where the key is absent; 0 is a number where it is the fallback.
  int64_t count_or(const char* key, int64_t fallback) const {
    return has(key) ? read_count(key, fallback == 0 ? 0 : 1) : fallback;
  }

  double number_or(const char* key, double fallback) const {
    return value_or(key, fallback, &Json::is_number, "is no number");
  }

  bool flag_or(const char* key, bool fallback) const {
    return value_or(key, fallback, &Json::is_boolean, "is neither true nor false");
  }

  std::string word_or(const char* key, const std::string& fallback) const {
    return value_or(key, fallback, &Json::is_string, "is no word");
  }

  /// An object within this one, or this one when there is none: some types nest what others do not.
  Fields nested(const char* key) const {
    return has(key) && object_[key].is_object() ? Fields(object_[key], path_) : *this;
  }

  /// An object within this one, or nothing.
  std::optional<Fields> find(const char* key) const {
    return has(key) && object_[key].is_object() ? std::optional(Fields(object_[key], path_)) : std::nullopt;
  }

  /// The words of a list; none when there is no list.
  std::vector<std::string> words(const char* key) const {
    std::vector<std::string> found;
    if (has(key) && !object_[key].is_array()) {
      fail(key, "is no list", shown(key), "");
    }
    for (const Json& entry : has(key) ? object_[key] : Json::array()) {
      found.push_back(entry.is_string() ? entry.get<std::string>() : "");
    }
    return found;
  }

  bool is_empty_list(const char* key) const { return !has(key) || (object_[key].is_array() && object_[key].empty()); }

  [[noreturn]] void fail(const char* key, std::string what, std::string found, std::string expected) const {
    fail_input({.where = path_ + ": " + key,
                .what = std::move(what),
                .found = std::move(found),
                .expected = std::move(expected)});
  }

  std::string shown(const char* key) const {
    return printable(object_[key].dump(-1, ' ', true, Json::error_handler_t::replace), 60);
  }

 private:
  template <class T>
  T value_or(const char* key, const T& fallback, bool (Json::*is_right)() const noexcept, const char* fault) const {
    if (!has(key)) {
      return fallback;
    }
    if (!(object_[key].*is_right)()) {
      fail(key, fault, shown(key), "");
    }
    return object_[key].get<T>();
  }

  int64_t read_count(const char* key, uint64_t least) const {
    const Json& value = object_[key];
    const bool is_count = value.is_number_unsigned() && value.get<uint64_t>() >= least &&
                          value.get<uint64_t>() <= static_cast<uint64_t>(most_size);
    if (!is_count) {
      fail(key, "is no count", shown(key), fmt::format("a whole number in [{}, {}]", least, most_size));
    }
    return value.get<int64_t>();
  }

  const Json& object_;
  const std::string& path_;
};

/// What all decoders of Llama's kind share: sizes, RMSNorm before each sublayer, a gated unit.
HuggingfaceConfig decoder(const Fields& text) {
  HuggingfaceConfig config;
  ModelConfig& model = config.model;
  model.vocab_size = text.count("vocab_size");
  model.d_model = text.count("hidden_size");
  model.n_layers = text.count("num_hidden_layers");
  model.n_heads = text.count("num_attention_heads");
  model.n_kv_heads = text.count_or("num_key_value_heads", model.n_heads);
  model.head_dim = text.count_or("head_dim", 0);
  model.d_ff = text.count_or("intermediate_size", text.count_or("moe_intermediate_size", 0));
  model.max_seq_len = text.count_or("max_position_embeddings", 2048);
  model.norm_eps = text.number_or("rms_norm_eps", 1e-6);
  model.tie_embeddings = text.flag_or("tie_word_embeddings", false);
  const Fields rope = text.nested("rope_parameters");
  model.rope_theta = rope.number_or("rope_theta", 10000.0);
  model.rope_fraction = rope.number_or("partial_rotary_factor", 1.0);
  const std::vector<std::string> kinds = text.words("layer_types");
  const bool windows = std::find(kinds.begin(), kinds.end(), "sliding_attention") != kinds.end() ||
                       (text.has("sliding_window") && text.flag_or("use_sliding_window", true));
  if (windows) {
    config.notes.emplace_back(
        "layers that see the last tokens alone count as if they saw all: caches and scores are less");
  }
  return config;
}

/// Biases of attention or of the feed-forward network by themselves are no setting here.
HuggingfaceConfig llama(const Fields& text) {
  HuggingfaceConfig config = decoder(text);
  if (text.flag_or("attention_bias", false) != text.flag_or("mlp_bias", false)) {
    text.fail("attention_bias", "differs from mlp_bias: only all projections together have biases here", "", "");
  }
  config.model.bias = text.flag_or("attention_bias", false);
  return config;
}

HuggingfaceConfig qwen2(const Fields& text) {
  HuggingfaceConfig config = decoder(text);
  config.release.qkv_bias = true;
  return config;
}

HuggingfaceConfig qwen3(const Fields& text) {
  HuggingfaceConfig config = llama(text);
  config.model.qk_norm = true;
  return config;
}

/// Widths and numbers of experts; every layer has them.
void use_experts(ModelConfig& model, const Fields& text, int64_t experts, int64_t width, int64_t shared_width) {
  const bool every_layer = text.count_or("decoder_sparse_step", 1) == 1 && text.is_empty_list("mlp_only_layers");
  if (!every_layer) {
    text.fail("mlp_only_layers", "layers with and without experts are not counted together", "", "");
  }
  model.ffn = "moe";
  model.moe_experts = experts;
  model.moe_top_k = text.count("num_experts_per_tok");
  model.d_ff = width;
  model.moe_shared_d_ff = shared_width;
}

HuggingfaceConfig mixtral(const Fields& text) {
  HuggingfaceConfig config = llama(text);
  use_experts(config.model, text, text.count("num_local_experts"), config.model.d_ff, 0);
  return config;
}

HuggingfaceConfig qwen3_moe(const Fields& text) {
  HuggingfaceConfig config = qwen3(text);
  use_experts(config.model, text, text.count("num_experts"), text.count("moe_intermediate_size"), 0);
  return config;
}

/// Every how many layers attention is full: told by the list of layers, or by a number.
int64_t full_attention_interval(const Fields& text, int64_t layers) {
  const std::vector<std::string> kinds = text.words("layer_types");
  if (kinds.empty()) {
    return text.count_or("full_attention_interval", 4);
  }
  const auto first = std::find(kinds.begin(), kinds.end(), "full_attention");
  const int64_t interval = first - kinds.begin() + 1;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const bool should_be_full = (layer + 1) % interval == 0;
    const bool is_there = layer < static_cast<int64_t>(kinds.size());
    if (!is_there || (kinds[static_cast<size_t>(layer)] == "full_attention") != should_be_full) {
      text.fail("layer_types", "full attention does not come back at equal distances", text.shown("layer_types"), "");
    }
  }
  return interval;
}

HuggingfaceConfig qwen3_next(const Fields& text) {
  HuggingfaceConfig config = qwen3(text);
  ModelConfig& model = config.model;
  model.norm = "zero_centered_rmsnorm";
  model.attention = "hybrid";
  model.attention_gate = "elementwise";
  model.full_attention_every = full_attention_interval(text, model.n_layers);
  model.gdn_key_heads = text.count("linear_num_key_heads");
  model.gdn_value_heads = text.count("linear_num_value_heads");
  model.gdn_key_dim = text.count("linear_key_head_dim");
  model.gdn_value_dim = text.count("linear_value_head_dim");
  if (text.count_or("linear_conv_kernel_dim", 4) != 4) {
    text.fail("linear_conv_kernel_dim", "another width of the convolution", text.shown("linear_conv_kernel_dim"), "4");
  }
  if (text.count_or("num_experts", 0) > 0) {
    use_experts(model, text, text.count("num_experts"), text.count("moe_intermediate_size"),
                text.count_or("shared_expert_intermediate_size", 0));
    model.moe_shared_gate = model.moe_shared_d_ff > 0;
  }
  config.release.mtp_layers = text.count_or("mtp_num_hidden_layers", 0);
  return config;
}

HuggingfaceConfig olmo2(const Fields& text) {
  HuggingfaceConfig config = llama(text);
  config.model.norm_position = "sublayer_output";
  config.model.qk_norm = true;
  config.model.qk_norm_over = "width";
  return config;
}

HuggingfaceConfig gpt_oss(const Fields& text) {
  HuggingfaceConfig config = decoder(text);
  use_experts(config.model, text, text.count("num_local_experts"), config.model.d_ff, 0);
  config.model.bias = true;
  config.model.moe_unit = "swiglu_oai";
  config.release.attention_sinks = true;
  config.release.router_bias = true;
  return config;
}

HuggingfaceConfig gpt2(const Fields& text) {
  HuggingfaceConfig config;
  ModelConfig& model = config.model;
  model.vocab_size = text.count("vocab_size");
  model.d_model = text.count("n_embd");
  model.n_layers = text.count("n_layer");
  model.n_heads = text.count("n_head");
  model.d_ff = text.count_or("n_inner", 4 * model.d_model);
  model.max_seq_len = text.count_or("n_positions", text.count_or("n_ctx", 1024));
  model.norm = "layernorm";
  model.norm_eps = text.number_or("layer_norm_epsilon", 1e-5);
  model.ffn = "gelu_tanh";
  model.position = "learned";
  model.bias = true;
  model.tie_embeddings = text.flag_or("tie_word_embeddings", true);
  return config;
}

struct ModelType {
  std::string_view model_type;
  HuggingfaceConfig (*read)(const Fields& text);
};

constexpr ModelType model_types[] = {
    {"gpt2", gpt2},           {"llama", llama},
    {"mistral", llama},       {"mixtral", mixtral},
    {"qwen2", qwen2},         {"qwen3", qwen3},
    {"qwen3_moe", qwen3_moe}, {"qwen3_next", qwen3_next},
    {"qwen3_5", qwen3_next},  {"qwen3_5_moe", qwen3_next},
    {"olmo2", olmo2},         {"gpt_oss", gpt_oss},
};

/// The vision tower of Qwen2-VL's kind.
void use_vision_tower(const Fields& vision, ReleaseConfig& release) {
  release.vision_layers = vision.count("depth");
  release.vision_d_model = vision.count("hidden_size");
  release.vision_d_ff = vision.count("intermediate_size");
  release.vision_positions = vision.count("num_position_embeddings");
  release.vision_patch = vision.count("patch_size");
  release.vision_frames = vision.count("temporal_patch_size");
  release.vision_merge = vision.count("spatial_merge_size");
}

/// The number type of the weights; newer files say dtype, older ones torch_dtype.
std::string dtype_of(const Fields& root, const Fields& text) {
  const std::string older = root.word_or("torch_dtype", text.word_or("dtype", "float32"));
  std::string dtype = root.word_or("dtype", older);
  std::vector<std::string> known;
  for (const StoredType& type : stored_types()) {
    known.emplace_back(type.name);
  }
  if (std::find(known.begin(), known.end(), dtype) == known.end()) {
    root.fail(root.has("dtype") ? "dtype" : "torch_dtype", "unknown number type", printable(dtype),
              "one of " + join(known));
  }
  return dtype;
}

const ModelType& type_of(const Fields& root, const std::string& path) {
  const std::string model_type = root.word_or("model_type", "");
  std::vector<std::string> names;
  for (const ModelType& row : model_types) {
    if (row.model_type == model_type) {
      return row;
    }
    names.emplace_back(row.model_type);
  }
  fail_input({.where = path + ": model_type",
              .what = "is not a type whose parameters can be counted",
              .found = printable(model_type),
              .expected = "one of " + join(names),
              .hint = root.has("weight_map") ? "it is the index of a model's files: count its config.json, or each file"
                                             : "the safetensors file itself is counted whatever its model"});
}

}  // namespace

HuggingfaceConfig parse_huggingface_config(std::string_view text, const std::string& path) {
  const Json root = parse_strictly(text, path, config_kind);
  if (!root.is_object()) {
    fail_input({.where = path, .what = "is not a config.json", .expected = "an object with a model_type"});
  }
  const Fields fields(root, path);
  const ModelType& type = type_of(fields, path);
  const Fields text_fields = fields.nested("text_config");
  HuggingfaceConfig config = type.read(text_fields);
  config.model_type = type.model_type;
  config.model.tie_embeddings = fields.flag_or("tie_word_embeddings", config.model.tie_embeddings);
  config.release.dtype = dtype_of(fields, text_fields);
  if (!fields.has("dtype") && !fields.has("torch_dtype") && !text_fields.has("dtype")) {
    config.notes.emplace_back("the config names no number type: float32 is taken");
  }
  if (const std::optional<Fields> vision = fields.find("vision_config")) {
    use_vision_tower(*vision, config.release);
  }
  return config;
}

HuggingfaceConfig load_huggingface_config(const std::string& path) {
  return parse_huggingface_config(read_bytes(path, most_config_bytes), path);
}

}  // namespace minillm
