#pragma once
// Feed-forward networks, the same function for every token: [B, T, d_model] -> [B, T, d_model].

#include "nn/model_config.h"
#include "nn/module.h"

#include <memory>
#include <span>
#include <string_view>
#include <variant>

namespace minillm {

/// What a gated network does with gate and up: a(gate) * up, or both bounded.
using GatedUnit = std::variant<Activation, BoundedGlu>;

/// gate_up [.., 2f], gate first -> [.., f]
Var gated(Var gate_up, const GatedUnit& unit);

/// A row of the table of feed-forward networks (config key model.ffn). `make` is null for "none".
struct FfnKind {
  std::string_view name;
  std::unique_ptr<Sublayer> (*make)(const FfnKind& kind, const ModelConfig& config, const Scope& scope);
  int matrices;                                  ///< of d_model x d_ff: 3 gated, 2 plain, 0 none
  Activation activation = Activation::identity;  ///< of the units that have one
  /// The unit of a gated network, null for others: what a mixture's experts may be made of.
  GatedUnit (*unit)(const FfnKind& kind, const ModelConfig& config) = nullptr;
  /// Width that works on one token; null: d_ff.
  int64_t (*active_width)(const ModelConfig& config) = nullptr;
  double default_limit = 0;  ///< of model.ffn_limit, where it is used
};

std::span<const FfnKind> ffn_kinds();

/// The row whose unit the network of a config uses: model.ffn's, of a mixture model.moe_unit's; null for a word that no
/// gated network has.
const FfnKind* unit_kind(const ModelConfig& config);

/// That unit, with the config's bounds. The config has been through derive().
GatedUnit gated_unit(const ModelConfig& config);

/// 8 d / 3 up to a multiple of `step`: the width with which three matrices have the parameters of two of width 4 d
/// (Shazeer 2020, "GLU Variants Improve Transformer", sec. 3).
int64_t gated_width(int64_t d, int64_t step);

/// Width of the network that works on one token: d_ff, of a mixture that of the chosen experts and the shared one; 0
/// for "none".
int64_t active_ffn_width(const ModelConfig& config);

/// The network that `config.ffn` names, declared under `scope` ("...mlp"); null for "none".
std::unique_ptr<Sublayer> make_ffn(const ModelConfig& config, const Scope& scope);

}  // namespace minillm
