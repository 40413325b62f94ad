#pragma once
// Pointwise activations and their gated form. (Kernels follow.)

#include <cstdint>

namespace minillm {

/// relu   max(0, x)
/// silu   x * sigmoid(x)
/// gelu   x * (1 + erf(x / sqrt 2)) / 2                              (Hendrycks & Gimpel 2016)
/// gelu_tanh  x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))      (its published approximation)
enum class Activation : uint8_t { relu, silu, gelu, gelu_tanh };

}  // namespace minillm
