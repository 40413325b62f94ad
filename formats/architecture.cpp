#include "formats/architecture.h"

#include <fmt/format.h>

#include <string_view>
#include <type_traits>

namespace minillm {

namespace {

template <class T>
std::string shown(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else {
    return fmt::format("{}", value);
  }
}

}  // namespace

std::vector<std::string> differences(const ModelConfig& config, const ModelConfig& fixed) {
  std::vector<std::string> found;
  const auto compare = [&](std::string_view key, const auto& here, const auto& there) {
    if (here != there) {
      found.push_back(fmt::format("model.{} = {}, not {}", key, shown(here), shown(there)));
    }
  };
  compare("n_kv_heads", config.n_kv_heads, fixed.n_kv_heads);
  compare("head_dim", config.head_dim, fixed.head_dim);
  compare("tie_embeddings", config.tie_embeddings, fixed.tie_embeddings);
  compare("bias", config.bias, fixed.bias);
  compare("causal", config.causal, fixed.causal);
  compare("position", config.position, fixed.position);
  if (config.position == "rope") {
    compare("rope_theta", config.rope_theta, fixed.rope_theta);
    compare("rope_fraction", config.rope_fraction, fixed.rope_fraction);
  }
  compare("norm", config.norm, fixed.norm);
  compare("norm_eps", config.norm_eps, fixed.norm_eps);
  compare("norm_position", config.norm_position, fixed.norm_position);
  compare("final_norm", config.final_norm == 1, fixed.final_norm == 1);
  compare("ffn", config.ffn, fixed.ffn);
  compare("residual", config.residual, fixed.residual);
  compare("attention", config.attention, fixed.attention);
  compare("qk_norm", config.qk_norm, fixed.qk_norm);
  compare("qkv_norm", config.qkv_norm, fixed.qkv_norm);
  if (config.qk_norm && fixed.qk_norm) {
    compare("qk_norm_over", config.qk_norm_over, fixed.qk_norm_over);
  }
  compare("attention_gate", config.attention_gate, fixed.attention_gate);
  return found;
}

ModelConfig as_llama_kind(ModelConfig config) {
  config.causal = true;
  config.position = "rope";
  config.rope_fraction = 1;
  config.norm = "rmsnorm";
  config.norm_position = "pre";
  config.final_norm = 1;
  config.ffn = "swiglu";
  config.residual = "plain";
  config.attention = "full";
  config.qkv_norm = false;
  config.attention_gate = "none";
  return config;
}

}  // namespace minillm
