// The folder that transformers opens: config.json, generation_config.json, model.safetensors, tokenizer.model,
// tokenizer_config.json.

#include "core/atomic_file.h"
#include "core/json_object.h"
#include "core/text.h"
#include "formats/architecture.h"
#include "formats/huggingface.h"
#include "formats/safetensors.h"

#include <filesystem>
#include <map>

namespace minillm {

namespace {

/// The first architecture that the model is; null: none, and `reasons` says why of each.
const HuggingfaceArchitecture* architecture_of(const ModelConfig& config, std::vector<std::string>& reasons) {
  for (const HuggingfaceArchitecture& architecture : huggingface_architectures()) {
    const std::vector<std::string> found = differences(config, architecture.fix(config));
    if (found.empty()) {
      return find_huggingface_architecture(architecture.model_type);
    }
    if (architecture.model_type != "mistral") {
      reasons.push_back(fmt::format("no {}: {}", architecture.name, join(found)));
    }
  }
  return nullptr;
}

std::vector<std::string> huggingface_obstacles(const ModelToExport& source) {
  std::vector<std::string> reasons;
  return architecture_of(source.model.config(), reasons) != nullptr ? std::vector<std::string>{} : reasons;
}

void add_special_ids(JsonObject& json, const Tokenizer* tokenizer) {
  if (tokenizer == nullptr) {
    json.add_null("bos_token_id");
    json.add_null("eos_token_id");
  } else {
    json.add("bos_token_id", int64_t{tokenizer->bos_id()});
    json.add("eos_token_id", int64_t{tokenizer->eos_id()});
  }
}

void add_gpt2_sizes(JsonObject& json, const ModelConfig& config) {
  json.add("n_embd", config.d_model);
  json.add("n_layer", config.n_layers);
  json.add("n_head", config.n_heads);
  json.add("n_inner", config.d_ff);
  json.add("n_positions", config.max_seq_len);
  json.add("n_ctx", config.max_seq_len);
  json.add("layer_norm_epsilon", config.norm_eps);
  json.add("activation_function", "gelu_new");
  json.add("attn_pdrop", 0.0);
  json.add("embd_pdrop", config.dropout);
  json.add("resid_pdrop", config.dropout);
}

void add_decoder_sizes(JsonObject& json, const ModelConfig& config, std::string_view model_type) {
  json.add("hidden_size", config.d_model);
  json.add("intermediate_size", config.d_ff);
  json.add("num_hidden_layers", config.n_layers);
  json.add("num_attention_heads", config.n_heads);
  json.add("num_key_value_heads", config.n_kv_heads);
  json.add("head_dim", config.head_dim);
  json.add("max_position_embeddings", config.max_seq_len);
  json.add("rms_norm_eps", config.norm_eps);
  json.add("rope_theta", config.rope_theta);
  json.add_null("rope_scaling");
  JsonObject rope;  // where newer versions of transformers look
  rope.add("rope_type", "default");
  rope.add("rope_theta", config.rope_theta);
  json.add("rope_parameters", rope);
  json.add("hidden_act", "silu");
  json.add("attention_bias", config.bias);
  json.add("attention_dropout", 0.0);
  if (model_type == "llama") {
    json.add("mlp_bias", config.bias);
  }
  if (model_type == "qwen3") {
    json.add("use_sliding_window", false);
  }
}

std::string config_json(const ModelToExport& source, const HuggingfaceArchitecture& architecture) {
  const ModelConfig& config = source.model.config();
  JsonObject json;
  json.add_raw("architectures", fmt::format("[\"{}\"]", architecture.name));
  json.add("model_type", architecture.model_type);
  json.add("vocab_size", config.vocab_size);
  if (architecture.model_type == "gpt2") {
    add_gpt2_sizes(json, config);
  } else {
    add_decoder_sizes(json, config, architecture.model_type);
  }
  json.add("tie_word_embeddings", config.tie_embeddings);
  json.add("initializer_range", 0.02);
  json.add("use_cache", true);
  json.add("torch_dtype", "float32");
  add_special_ids(json, source.tokenizer);
  return json.text() + "\n";
}

std::string generation_config_json(const Tokenizer* tokenizer) {
  JsonObject json;
  add_special_ids(json, tokenizer);
  json.add("do_sample", true);
  json.add("temperature", 1.0);
  json.add("top_p", 0.9);
  return json.text() + "\n";
}

bool is_bpe(const ModelToExport& source) {
  return source.tokenizer->tokenizer_kind() == TokenizerKind::byte_bpe;
}

/// Its pieces are in tokenizer.model or tokenizer.json: no blank is put in front, as in training.
std::string tokenizer_config_json(const ModelToExport& source) {
  JsonObject json;
  json.add("tokenizer_class", is_bpe(source) ? "GPT2TokenizerFast" : "LlamaTokenizer");
  if (!is_bpe(source)) {
    json.add("legacy", false);
    json.add("unk_token", source.tokenizer->piece(source.tokenizer->unk_id()));
    json.add_raw("sp_model_kwargs", "{}");
  }
  json.add("add_prefix_space", false);
  json.add("add_bos_token", true);
  json.add("add_eos_token", false);
  json.add("bos_token", source.tokenizer->piece(source.tokenizer->bos_id()));
  json.add("eos_token", source.tokenizer->piece(source.tokenizer->eos_id()));
  json.add_null("pad_token");
  json.add("model_max_length", source.model.config().max_seq_len);
  json.add("clean_up_tokenization_spaces", false);
  return json.text() + "\n";
}

/// Every tensor of the file with the weights of ours that are in it.
void write_weights(const Transformer& model, std::string_view model_type, const std::string& path) {
  const WeightsByName weights(model);
  std::vector<std::string> order;
  std::map<std::string, Buffer> in_file;
  for (const NamedTensor& tensor : model.parameters().named_tensors()) {
    const ForeignName there = huggingface_name(model_type, model.config(), tensor.name);
    auto found = in_file.find(there.name);
    if (found == in_file.end()) {
      order.push_back(there.name);
      found =
          in_file.emplace(there.name, Buffer(shape_in_file(there.layout, tensor.value.shape), DType::float32)).first;
    }
    weights.write_columns(tensor.name, there.layout, found->second.tensor());
  }
  std::vector<TensorToSave> tensors;
  for (const std::string& name : order) {
    tensors.push_back({name, in_file.at(name).tensor()});
  }
  write_safetensors(path, tensors);
}

std::string write_huggingface(const ModelToExport& source, const std::string& path) {
  const auto file = [&](std::string_view name) { return file_in(path, name); };
  std::vector<std::string> reasons;
  const HuggingfaceArchitecture& architecture = *architecture_of(source.model.config(), reasons);
  write_weights(source.model, architecture.model_type, file(huggingface_weights_name));
  write_file_atomically(file(huggingface_config_name), config_json(source, architecture));
  write_file_atomically(file("generation_config.json"), generation_config_json(source.tokenizer));
  if (source.tokenizer == nullptr) {
    return "the tokenizer's files: the run has none";
  }
  if (source.tokenizer->tokenizer_kind() == TokenizerKind::words) {
    return "the tokenizer's files: the built-in corpus has a table of words, which is no SentencePiece model";
  }
  write_file_atomically(file(is_bpe(source) ? huggingface_bpe_name : huggingface_tokenizer_name),
                        source.tokenizer->serialized());
  write_file_atomically(file("tokenizer_config.json"), tokenizer_config_json(source));
  return "";
}

}  // namespace

ExportFormat huggingface_export() {
  return {.name = "huggingface",
          .is_folder = true,
          .fixed_eps = {},
          .all_weight_types = false,
          .obstacles = huggingface_obstacles,
          .write = write_huggingface};
}

}  // namespace minillm
