#pragma once
// The feed-forward width that gives a model a wanted number of parameters, so that variants compare fairly.

#include "nn/model_config.h"

#include <cstdint>

namespace minillm {

struct WidthMatch {
  int64_t d_ff = 0;
  int64_t parameters = 0;
  int64_t difference = 0;  ///< parameters - wanted
  double percent = 0;      ///< difference / wanted * 100
};

/// The d_ff whose parameter count is nearest to `wanted`; the smaller of two equally near. `config` has been through
/// derive(). Throws an Error when the config has no feed-forward network or is too large without one.
WidthMatch match_parameters(ModelConfig config, int64_t wanted);

}  // namespace minillm
