#pragma once
// A stack of a hundred layers F(x) = W ReLU(x), with what may stand around each: the subject of the lessons on depth.

#include <cstdint>
#include <string_view>
#include <vector>

namespace minillm {

enum class Around : uint8_t {
  nothing,          ///< x <- F(x)
  residual,         ///< x <- x + F(x)
  scaled_residual,  ///< x <- x + F(x) / sqrt(depth)
  pre_norm,         ///< x <- x + F(RMSNorm(x))
};

inline constexpr int64_t stack_depth = 100;

/// W is normal with variance gain^2 2/width: each F multiplies lengths, and backward those of gradients, by about
/// `gain`. Weights and input are the same for every choice. Returns |dL/dx_l| / |dL/dx_depth|, l = 0 .. depth, for L a
/// random projection of the last x.
std::vector<double> gradient_norms(Around around, double gain, int64_t depth = stack_depth);

}  // namespace minillm
