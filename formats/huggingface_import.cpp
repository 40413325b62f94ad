// Reads a folder of transformers as a model of ours.

#include "core/error.h"
#include "core/text.h"
#include "data/byte_bpe.h"
#include "data/strict_json.h"
#include "formats/huggingface.h"
#include "formats/huggingface_config.h"
#include "formats/safetensors.h"
#include "formats/safetensors_shards.h"
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
      tensors.push_back({rows.name, stored->dtype, shape, stored->begin, stored->end, there.layout, 0, stored->part});
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

/// The weights as they stand there: in one file, or in several that an index names.
WeightFile open_weights(const std::string& folder) {
  std::error_code error;
  const std::string path = file_in(folder, huggingface_weights_name);
  if (fs::exists(path, error)) {
    return SafetensorsFile(path);
  }
  const std::string index = file_in(folder, huggingface_index_name);
  if (fs::exists(index, error)) {
    return open_safetensors_shards(index);
  }
  const bool by_pickle = fs::exists(file_in(folder, "pytorch_model.bin"), error);
  fail_input({.where = folder,
              .what = fmt::format("has neither {} nor {}", huggingface_weights_name, huggingface_index_name),
              .found = by_pickle ? "pytorch_model.bin, which only Python can read" : "",
              .expected = "weights in safetensors files",
              .hint = by_pickle ? "load it in transformers and save it again with save_pretrained" : ""});
}

std::vector<WeightPart> open_again(const WeightFile& file) {
  std::vector<WeightPart> parts;
  for (const WeightPart& part : file.parts()) {
    parts.push_back({part.path, open_for_reading(part.path)});
  }
  return parts;
}

void check_pieces(const std::string& path, int64_t pieces, int64_t vocab_size) {
  if (pieces > vocab_size) {
    fail_input({.where = path,
                .what = "the tokenizer has more pieces than the model has ids",
                .found = std::to_string(pieces),
                .expected = fmt::format("at most {}", vocab_size)});
  }
}

/// tokenizer.model, else what byte-level BPE is kept in. Hugging Face's tokenizer.json can be much else: then the model
/// comes without.
void read_tokenizer(const std::string& folder, ForeignModel& model) {
  std::error_code error;
  const std::string model_path = file_in(folder, huggingface_tokenizer_name);
  const std::string json_path = file_in(folder, huggingface_bpe_name);
  const std::string vocab_path = file_in(folder, "vocab.json");
  const std::string merges_path = file_in(folder, "merges.txt");
  if (fs::exists(model_path, error)) {
    model.tokenizer = read_bytes(model_path, most_tokenizer_bytes);
    model.tokenizer_file = model_path;
    check_pieces(model_path, load_tokenizer(model.tokenizer, model_path)->vocab_size(), model.config.vocab_size);
    return;
  }
  const bool is_json = fs::exists(json_path, error);
  if (!is_json && !(fs::exists(vocab_path, error) && fs::exists(merges_path, error))) {
    return;
  }
  try {
    model.tokenizer =
        is_json ? read_bytes(json_path, most_tokenizer_bytes) : tokenizer_json_of(vocab_path, merges_path);
    model.tokenizer_file = is_json ? json_path : "";
    const std::string& path = is_json ? json_path : vocab_path;
    check_pieces(path, load_tokenizer(model.tokenizer, path)->vocab_size(), model.config.vocab_size);
  } catch (const Error& problem) {
    model.tokenizer.clear();
    model.tokenizer_file.clear();
    model.dropped += fmt::format("{}the tokenizer ({})", model.dropped.empty() ? "" : "; ", problem.what());
  }
}

}  // namespace

ForeignModel open_huggingface(const std::string& folder) {
  std::string model_type;
  const ModelConfig config = read_config(file_in(folder, huggingface_config_name), model_type);
  const WeightFile file = open_weights(folder);
  std::string dropped;
  std::vector<StoredTensor> tensors = tensors_of(file, config, model_type, dropped);
  ForeignModel model = {fmt::format("Hugging Face, {}", find_huggingface_architecture(model_type)->name),
                        config,
                        {file.path(), open_again(file), std::move(tensors)},
                        dropped};
  read_tokenizer(folder, model);
  return model;
}

}  // namespace minillm
