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
/// derive(). Throws an input Error when the config has no feed-forward network, is too large without one, or stays
/// too small with the widest that a config may have.
WidthMatch match_parameters(ModelConfig config, int64_t wanted);

}  // namespace minillm
