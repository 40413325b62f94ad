#pragma once
// The config.json beside a model on Hugging Face, as our sizes and parts. For counting: what our model does not have is
// carried in ReleaseConfig.

#include "nn/model_config.h"
#include "nn/release.h"

#include <string>
#include <string_view>
#include <vector>

namespace minillm {

struct HuggingfaceConfig {
  std::string model_type;  ///< "llama"
  ModelConfig model;       ///< derived keys are still to be derived
  ReleaseConfig release;
  std::vector<std::string> notes = {};  ///< what the count leaves out
};

constexpr size_t most_config_bytes = 10'000'000;  ///< a longer file is no config.json

/// Reads a config.json. Known model types: gpt2, llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, qwen3_next, qwen3_5,
/// qwen3_5_moe, olmo2, gpt_oss. Throws an input Error that names file and key: no JSON, another model type, a size that
/// is missing or no count, a setting that changes what the type's parts are.
HuggingfaceConfig load_huggingface_config(const std::string& path);

/// The same for text in memory; `path` is for errors.
HuggingfaceConfig parse_huggingface_config(std::string_view text, const std::string& path);

}  // namespace minillm
