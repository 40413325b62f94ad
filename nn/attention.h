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

/// A row of the table of mixers (config key model.attention).
struct MixerKind {
  std::string_view name;
  std::unique_ptr<Sublayer> (*make)(const ModelConfig& config, const Scope& scope, const RopeTable& rope);
};

std::span<const MixerKind> mixer_kinds();

/// The mixer that `config.attention` names, declared under `scope` ("...self_attn"). `rope` outlives it.
std::unique_ptr<Sublayer> make_mixer(const ModelConfig& config, const Scope& scope, const RopeTable& rope);

}  // namespace minillm
