#include "formats/huggingface.h"

#include "core/error.h"
#include "formats/architecture.h"

#include <algorithm>
#include <array>

namespace minillm {

namespace {

ModelConfig as_llama(ModelConfig config) {
  config = as_llama_kind(config);
  config.qk_norm = false;
  return config;
}

ModelConfig as_qwen3(ModelConfig config) {
  config = as_llama_kind(config);
  config.bias = false;
  config.qk_norm = true;
  config.qk_norm_over = "head";
  return config;
}

ModelConfig as_olmo2(ModelConfig config) {
  config = as_qwen3(config);
  config.norm_position = "sublayer_output";
  config.qk_norm_over = "width";
  return config;
}

ModelConfig as_gpt2(ModelConfig config) {
  config = as_llama(config);
  config.n_kv_heads = config.n_heads;
  config.head_dim = config.d_model / config.n_heads;
  config.bias = true;
  config.position = "learned";
  config.norm = "layernorm";
  config.ffn = "gelu_tanh";
  return config;
}

constexpr std::array<HuggingfaceArchitecture, 5> architectures = {{
    {"llama", "LlamaForCausalLM", as_llama},
    {"qwen3", "Qwen3ForCausalLM", as_qwen3},
    {"olmo2", "Olmo2ForCausalLM", as_olmo2},
    {"gpt2", "GPT2LMHeadModel", as_gpt2},
    {"mistral", "MistralForCausalLM", as_llama},  // read alone: behind llama, whose model it is
}};

struct Renamed {
  std::string_view ours;
  std::string_view theirs;
};

/// The name behind `renamed`'s row, or the same name.
template <size_t N>
std::string_view rename(const std::array<Renamed, N>& renamed, std::string_view ours) {
  const auto row = std::find_if(renamed.begin(), renamed.end(), [&](const Renamed& r) { return r.ours == ours; });
  return row == renamed.end() ? ours : row->theirs;
}

constexpr std::array<Renamed, 2> olmo2_parts = {{
    {"input_layernorm.weight", "post_attention_layernorm.weight"},
    {"post_attention_layernorm.weight", "post_feedforward_layernorm.weight"},
}};

constexpr std::array<Renamed, 8> gpt2_modules = {{
    {"model.embed_tokens", "transformer.wte"},
    {"model.embed_positions", "transformer.wpe"},
    {"model.norm", "transformer.ln_f"},
    {"input_layernorm", "ln_1"},
    {"post_attention_layernorm", "ln_2"},
    {"self_attn.o_proj", "attn.c_proj"},
    {"mlp.up_proj", "mlp.c_fc"},
    {"mlp.down_proj", "mlp.c_proj"},
}};

ForeignName gpt2_name(const ModelConfig& config, std::string_view ours) {
  const NameInLayer where = split_layer(ours);
  const std::string start = where.layer.empty() ? "" : fmt::format("transformer.h.{}.", where.layer);
  const size_t dot = where.part.rfind('.');
  const std::string_view module = where.part.substr(0, dot);
  const std::string_view kind = where.part.substr(dot);  // ".weight", ".bias"
  const int64_t d = config.d_model;
  constexpr std::array<std::string_view, 3> merged = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
  if (const auto found = std::find(merged.begin(), merged.end(), module); found != merged.end()) {
    const int64_t first = (found - merged.begin()) * d;
    return {fmt::format("{}attn.c_attn{}", start, kind), {.width = 3 * d, .first = first}};
  }
  ForeignName name = {fmt::format("{}{}{}", start, rename(gpt2_modules, module), kind)};
  const bool is_projection = module == "self_attn.o_proj" || module.starts_with("mlp.");
  if (is_projection && kind == ".weight") {
    name.layout.width = module == "mlp.up_proj" ? config.d_ff : d;
  }
  return name;
}

}  // namespace

const HuggingfaceArchitecture* find_huggingface_architecture(std::string_view model_type) {
  for (const HuggingfaceArchitecture& architecture : architectures) {
    if (architecture.model_type == model_type) {
      return &architecture;
    }
  }
  return nullptr;
}

std::vector<HuggingfaceArchitecture> huggingface_architectures() {
  return {architectures.begin(), architectures.end()};
}

ForeignName huggingface_name(std::string_view model_type, const ModelConfig& config, std::string_view ours) {
  if (model_type == "gpt2") {
    return gpt2_name(config, ours);
  }
  const NameInLayer where = split_layer(ours);
  if (model_type == "olmo2" && !where.layer.empty()) {
    return {fmt::format("model.layers.{}.{}", where.layer, rename(olmo2_parts, where.part))};
  }
  return {std::string(ours)};
}

}  // namespace minillm
