#pragma once
// Feed-forward networks, the same function for every token: [B, T, d_model] -> [B, T, d_model].

#include "nn/model_config.h"
#include "nn/module.h"

#include <memory>
#include <span>
#include <string_view>

namespace minillm {

/// A row of the table of feed-forward networks (config key model.ffn). `make` is null for "none".
struct FfnKind {
  std::string_view name;
  std::unique_ptr<Sublayer> (*make)(const FfnKind& kind, const ModelConfig& config, const Scope& scope);
  Activation activation;
  int matrices;  ///< of d_model x d_ff: 3 gated, 2 plain, 0 none
};

std::span<const FfnKind> ffn_kinds();

/// The network that `config.ffn` names, declared under `scope` ("...mlp"); null for "none".
std::unique_ptr<Sublayer> make_ffn(const ModelConfig& config, const Scope& scope);

}  // namespace minillm
