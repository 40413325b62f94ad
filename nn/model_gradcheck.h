#pragma once
// Every parameter of a model, of any config, against central differences in double.

#include "autograd/gradcheck.h"
#include "nn/model_config.h"

#include <vector>

namespace minillm {

/// The config with its widths cut down (heads at most 4 of width at most 8, d_ff at most 24, 2 layers, 31 tokens, 8
/// positions) and its structure kept: the same parts, the same placement, and query heads that share a key head when
/// the config's do, two of them however many there were.
ModelConfig shrink_for_gradcheck(ModelConfig config);

/// Checks all named tensors of a model made from `config` (as given: shrink it first) on a random batch. Weights are
/// drawn large enough that every part matters; dropout is off; relu inputs near 0 are avoided by drawing again.
std::vector<GradcheckResult> gradcheck_model(const ModelConfig& config, const TapeOptions& tape_options = {},
                                             const GradcheckOptions& options = {});

}  // namespace minillm
