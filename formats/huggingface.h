#pragma once
// Models as Hugging Face's transformers keeps them: a folder with config.json, model.safetensors (F32 here) and
// tokenizer files. An architecture is one that a model of ours is, weight for weight:
//
//   LlamaForCausalLM   what as_llama_kind says, biases on every projection or none
//   Qwen3ForCausalLM   the same with qk_norm over each head, no biases
//   Olmo2ForCausalLM   the same with norms on sublayers' outputs and qk_norm over the width, no biases
//   GPT2LMHeadModel    learned positions, LayerNorm, gelu_tanh, biases; matrices transposed ("Conv1D"), q|k|v merged

#include "formats/foreign_model.h"
#include "formats/foreign_name.h"
#include "formats/model_export.h"

#include <string>
#include <string_view>

namespace minillm {

inline constexpr std::string_view huggingface_config_name = "config.json";
inline constexpr std::string_view huggingface_weights_name = "model.safetensors";
inline constexpr std::string_view huggingface_index_name = "model.safetensors.index.json";
inline constexpr std::string_view huggingface_tokenizer_name = "tokenizer.model";  // SentencePiece
inline constexpr std::string_view huggingface_bpe_name = "tokenizer.json";         // byte-level BPE

struct HuggingfaceArchitecture {
  std::string_view model_type;             ///< "llama"
  std::string_view name;                   ///< "LlamaForCausalLM"
  ModelConfig (*fix)(ModelConfig config);  ///< a derived config with what the architecture fixes
};

/// The architecture of a model type; null when models of it are not read or written.
const HuggingfaceArchitecture* find_huggingface_architecture(std::string_view model_type);
std::vector<HuggingfaceArchitecture> huggingface_architectures();

/// What a weight of ours is called there.
ForeignName huggingface_name(std::string_view model_type, const ModelConfig& config, std::string_view ours);

/// Opens such a folder. An input Error names what is missing, another architecture, and settings that our model has
/// not: scaled rotary positions, windows, other activations.
ForeignModel open_huggingface(const std::string& folder);

ExportFormat huggingface_export();

}  // namespace minillm
