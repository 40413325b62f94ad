#pragma once
// How weights start (GPT-2's scheme; docs: "Init" in docs/numbers.md).

#include "autograd/parameter.h"
#include "nn/model_config.h"

#include <cmath>

namespace minillm {

inline constexpr double init_std = 0.02;

/// Embeddings, positions and every matrix that does not write to the residual stream.
inline Init matrix_init() {
  return Init::normal(init_std);
}

/// o_proj and down_proj, the matrices that write to the residual stream: 2 * n_layers independent writes of this size
/// leave the stream's variance where one unscaled write would (Radford et al. 2019, section 2.3).
inline Init residual_out_init(const ModelConfig& config) {
  const bool scaled = config.residual_out_init == "scaled";
  return Init::normal(scaled ? init_std / std::sqrt(2.0 * static_cast<double>(config.n_layers)) : init_std);
}

}  // namespace minillm
