#pragma once
// What an architecture of other programs fixes, against a config of ours.

#include "nn/model_config.h"

#include <string>
#include <vector>

namespace minillm {

/// The settings of a config that are not `fixed`'s: "model.norm = layernorm, not rmsnorm". Both are derived. What
/// changes no result of a trained model (dropout, how it began, qk_clip) is not looked at.
std::vector<std::string> differences(const ModelConfig& config, const ModelConfig& fixed);

/// The config as Llama's kind of decoder has it: rotary positions over whole heads, RMSNorm with a gain before each
/// sublayer and at the end, SwiGLU, full causal attention, nothing beside. What a format leaves free is kept: sizes,
/// rope_theta, norm_eps, tie_embeddings, bias, qk_norm.
ModelConfig as_llama_kind(ModelConfig config);

}  // namespace minillm
