// Reads a folder of transformers as a model of ours.

#include "core/error.h"
#include "core/text.h"
#include "data/tokenizer.h"
#include "formats/huggingface.h"
#include "formats/huggingface_config.h"
#include "formats/safetensors.h"
#include "formats/strict_json.h"
#include "nn/transformer.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <set>
#include <utility>

namespace minillm {

namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr size_t most_tokenizer_bytes = size_t{1} << 28;

std::string file_in(const std::string& folder, std::string_view name) {
  return (fs::path(folder) / std::string(name)).string();
}

/// Settings that counting may pass over and computing may not.
class Settings {
 public:
  Settings(const Json& root, const std::string& path) : root_(root), path_(path) {}

  /// The key is absent, null or one of the values.
  void must_be(const char* key, const std::vector<Json>& values) const { check(root_, key, key, values); }

  /// The same of a key within an object, where there is one.
  void must_be_in(const char* object, const char* key, const std::vector<Json>& values) const {
    if (root_.contains(object) && root_[object].is_object()) {
      check(root_[object], key, fmt::format("{}.{}", object, key), values);
    }
  }

  bool has(const char* key) const { return root_.contains(key) && !root_[key].is_null(); }

 private:
  void check(const Json& object, const char* key, const std::string& shown, const std::vector<Json>& values) const {
    if (!object.contains(key) || object[key].is_null()) {
      return;
    }
    std::vector<std::string> expected;
    for (const Json& value : values) {
      if (object[key] == value) {
        return;
      }
      expected.push_back(value.dump());
    }
    expected.emplace_back("nothing");
    fail_input({.where = path_ + ": " + shown,
                .what = "a setting that no model of minillm has",
                .found = printable(object[key].dump(-1, ' ', true, Json::error_handler_t::replace), 60),
                .expected = join(expected, " or ")});
  }

  const Json& root_;
  const std::string& path_;
};

/// Checks what parse_huggingface_config, which counts, leaves out.
void check_settings(const Settings& settings, std::string_view model_type) {
  if (model_type == "gpt2") {
    settings.must_be("activation_function", {"gelu_new", "gelu_pytorch_tanh"});
    settings.must_be("scale_attn_weights", {true});
    settings.must_be("scale_attn_by_inverse_layer_idx", {false});
    settings.must_be("add_cross_attention", {false});
    return;
  }
  settings.must_be("hidden_act", {"silu", "swish"});
  settings.must_be_in("rope_scaling", "type", {"default"});
  settings.must_be_in("rope_scaling", "rope_type", {"default"});
  settings.must_be_in("rope_parameters", "rope_type", {"default"});
  settings.must_be("partial_rotary_factor", {1.0});
  settings.must_be_in("rope_parameters", "partial_rotary_factor", {1.0});
  settings.must_be("quantization_config", {});
}

/// What transformers takes for keys that a config.json leaves out, where parse_huggingface_config takes another.
void use_defaults(ModelConfig& config, const Settings& settings, std::string_view model_type) {
  if (model_type == "olmo2" && !settings.has("rms_norm_eps")) {
    config.norm_eps = 1e-5;
  }
  if (model_type == "qwen3" && !settings.has("head_dim")) {
    config.head_dim = 128;
  }
}

ModelConfig read_config(const std::string& path, std::string& model_type) {
  const std::string text = read_bytes(path, most_config_bytes);
  HuggingfaceConfig read = parse_huggingface_config(text, path);
  if (find_huggingface_architecture(read.model_type) == nullptr) {
    std::vector<std::string> types;
    for (const HuggingfaceArchitecture& architecture : huggingface_architectures()) {
      types.emplace_back(architecture.model_type);
    }
    fail_input({.where = path + ": model_type",
                .what = "models of this type can be counted and not imported",
                .found = read.model_type,
                .expected = "one of " + join(types)});
  }
  const Json root = parse_strictly(text, path, {.subject = "", .most_depth = 16, .deeper_than = "a config.json is"});
  const Settings settings(root, path);
  check_settings(settings, read.model_type);
  for (const std::string& note : read.notes) {
    if (note.find("last tokens") != std::string::npos) {
      fail_input({.where = path, .what = "layers that see the last tokens alone are no part of minillm"});
    }
  }
  use_defaults(read.model, settings, read.model_type);
  derive(read.model, 0, 0);
  model_type = read.model_type;
  return read.model;
}

/// The name in the file: what GPT-2's first files were written with had no "transformer." in front.
std::string name_in_file(const WeightFile& file, std::string name) {
  constexpr std::string_view start = "transformer.";
  return file.find(name) == nullptr && name.starts_with(start) ? name.substr(start.size()) : name;
}

/// The file's tensors as ours. What is missing is told by load_into, against the model.
std::vector<StoredTensor> tensors_of(const WeightFile& file, const ModelConfig& config, std::string_view model_type,
                                     std::string& dropped) {
  std::vector<StoredTensor> tensors;
  std::set<std::string> used;
  const Transformer model(config);  // shapes, no memory
  for (const Parameter& parameter : model.parameters().parameters()) {
    for (const NamedRows& rows : parameter.slices) {
      const Shape shape = parameter.shape.rank() > 1 ? Shape{rows.rows, parameter.shape[1]} : Shape{rows.rows};
      const ForeignName there = huggingface_name(model_type, config, rows.name);
      const std::string name = name_in_file(file, there.name);
      const StoredTensor* stored = file.find(name);
      if (stored == nullptr) {
        continue;
      }
      const Shape expected = shape_in_file(there.layout, shape);
      if (!(stored->shape == expected)) {
        fail_input({.where = file.path(),
                    .what = fmt::format("tensor {} has another shape than config.json says", printable(name)),
                    .found = to_string(stored->shape),
                    .expected = to_string(expected)});
      }
      used.insert(name);
      tensors.push_back({rows.name, stored->dtype, shape, stored->begin, stored->end, there.layout});
    }
  }
  size_t buffers = 0;
  for (const StoredTensor& stored : file.tensors()) {
    if (used.count(stored.name) == 0) {
      if (is_buffer(stored)) {
        ++buffers;
      } else {
        tensors.push_back(stored);  // load_into tells that it is not expected, or a tied head
      }
    }
  }
  dropped = buffers == 0 ? "" : fmt::format("{} tensors that were never trained (masks, frequencies)", buffers);
  return tensors;
}

void check_weights_are_there(const std::string& folder) {
  std::error_code error;
  if (fs::exists(file_in(folder, huggingface_weights_name), error)) {
    return;
  }
  const bool in_shards = fs::exists(file_in(folder, "model.safetensors.index.json"), error);
  const bool by_pickle = fs::exists(file_in(folder, "pytorch_model.bin"), error);
  fail_input({.where = folder,
              .what = fmt::format("has no {}", huggingface_weights_name),
              .found = in_shards   ? "weights in several files"
                       : by_pickle ? "pytorch_model.bin, which only Python can read"
                                   : "",
              .expected = "weights in one safetensors file",
              .hint = in_shards || by_pickle ? "load it in transformers and save it again with save_pretrained" : ""});
}

}  // namespace

ForeignModel open_huggingface(const std::string& folder) {
  std::string model_type;
  const ModelConfig config = read_config(file_in(folder, huggingface_config_name), model_type);
  check_weights_are_there(folder);
  const std::string path = file_in(folder, huggingface_weights_name);
  const SafetensorsFile file(path);
  std::string dropped;
  std::vector<StoredTensor> tensors = tensors_of(file, config, model_type, dropped);
  ForeignModel model = {fmt::format("Hugging Face, {}", find_huggingface_architecture(model_type)->name),
                        config,
                        {path, open_for_reading(path), std::move(tensors)},
                        dropped};
  const std::string tokenizer = file_in(folder, huggingface_tokenizer_name);
  std::error_code error;
  if (fs::exists(tokenizer, error)) {
    model.tokenizer = read_bytes(tokenizer, most_tokenizer_bytes);
    model.tokenizer_file = tokenizer;
    const int64_t pieces = load_tokenizer(model.tokenizer, tokenizer)->vocab_size();
    if (pieces > config.vocab_size) {
      fail_input({.where = tokenizer,
                  .what = "the tokenizer has more pieces than the model has ids",
                  .found = std::to_string(pieces),
                  .expected = fmt::format("at most {}", config.vocab_size)});
    }
  }
  return model;
}

}  // namespace minillm
