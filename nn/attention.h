#pragma once
// Token mixers: the sublayer in which positions see each other. [B, T, d_model] -> [B, T, d_model].

#include "core/kernels/attention.h"
#include "nn/model_config.h"
#include "nn/module.h"
#include "nn/position.h"

#include <memory>
#include <span>
#include <string_view>

namespace minillm {

/// How the model's q_proj, k_proj and v_proj write a token's row.
QkvLayout layout_of(const ModelConfig& config);

/// Where the gate of full attention stands.
enum class GatePlace : uint8_t {
  projection,  ///< on queries, keys or values as projected, before norms and rotation
  attended,    ///< on what the heads attended to, before o_proj
  output,      ///< behind o_proj
};

/// `heads` slices of `width` columns each, from column `begin` on.
struct GatedColumns {
  int64_t begin;
  int64_t heads;
  int64_t width;
};

/// A row of the table of the gate's places (config key model.attention_gate_position).
struct GatePosition {
  std::string_view name;
  GatePlace place;
  GatedColumns (*columns)(const ModelConfig& config, const QkvLayout& layout);  ///< of what stands at the place
};

std::span<const GatePosition> gate_positions();

/// What a layer's mixer costs beside the products with its weights, for ledgers.
struct MixerCost {
  int64_t score_width = 0;     ///< n_heads * head_dim where every query meets every key it sees, else 0
  int64_t saved_values = 0;    ///< a lower bound of what stays of each token until backward
  int64_t flops_per_past = 0;  ///< of a decoded token with each past one: its score and its part of the sum
  int64_t cached_values = 0;   ///< numbers that a decoder keeps of each past token
  int64_t state_values = 0;    ///< elements of the states that stand for the whole past, however long it is
  int64_t recent_values = 0;   ///< numbers that a decoder keeps of the last tokens alone
};

/// A row of the table of mixers (config key model.attention). The layer matters where layers differ.
struct MixerKind {
  std::string_view name;
  std::unique_ptr<Sublayer> (*make)(const ModelConfig& config, const Scope& block, const RopeTable& rope,
                                    int64_t layer);
  MixerCost (*cost)(const ModelConfig& config, int64_t layer);
};

std::span<const MixerKind> mixer_kinds();

/// The mixer that `config.attention` names for a layer, declared in its block's scope under "self_attn" or
/// "linear_attn". `rope` outlives it.
std::unique_ptr<Sublayer> make_mixer(const ModelConfig& config, const Scope& block, const RopeTable& rope,
                                     int64_t layer);

/// What the mixer of a layer costs.
MixerCost mixer_cost(const ModelConfig& config, int64_t layer);

}  // namespace minillm
