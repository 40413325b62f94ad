#pragma once
// What `minillm ledger` counts. A config, a preset, a Hugging Face config.json, or the header of a safetensors file.

#include "nn/ledger.h"
#include "train/train_config.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace minillm::cli {

/// What was counted. Without a config (a file of weights) there are tensors alone.
struct Counted {
  std::string name;
  Ledger ledger;
  std::optional<Config> config;
  std::vector<std::string> notes = {};

  /// Of what a decoder keeps and of released weights.
  std::string_view dtype() const { return config ? std::string_view(config->stored_dtype()) : "float32"; }

  /// Weights, gradients and AdamW's two moments. In float32 as many as with bfloat16 weights and gradients beside
  /// float32 weights.
  int64_t bytes_per_parameter() const { return config && config->train.dtype == "float64" ? 32 : 16; }
};

/// The word may be a path or a preset's name. Reads no weights and no data.
Counted count_model(const std::string& word, const std::vector<std::string>& overrides);

}  // namespace minillm::cli
