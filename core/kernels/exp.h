#pragma once
// exp, sigmoid and tanh in float for loops that the compiler vectorises: no branch, no table, no call. To be used
// inside functions marked MINILLM_SIMD (simd.h); every instruction set gives the same bits.
//
//   exp(x) = 2^n * exp(r),  n = round(x / ln 2),  r = x - n ln 2 in [-ln 2 / 2, ln 2 / 2]
//   exp(r) = 1 + r + r^2 * q(r),  q of degree 4 through the Chebyshev points of the interval: relative error 1.1e-8

#include <bit>
#include <cstdint>
#include <limits>

namespace minillm::kernels {

/// e^x within 1.05 ulp where the result is a normal number (tests/core/exp_test.cpp measures it on a sample). Exactly
/// 1 at 0; exactly 0 where e^x is below the smallest normal number, -infinity included; infinity where it is above the
/// largest number; NaN stays NaN, so that a broken value is not hidden.
inline float fast_exp(float x) {
  constexpr float lowest = -87.3365402F;  // the smallest float whose e^x is a normal number
  constexpr float highest = 88.7228317F;  // the largest float whose e^x is finite
  constexpr float log2_e = 1.44269502F;
  constexpr float ln2_high = 0.693359375F;  // 355/512: n * ln2_high is exact for every n that occurs
  constexpr float ln2_low = -0.000212194442F;
  // Adding 1.5 * 2^23 leaves no bits for a fraction: the sum is rounded to an integer, held in its lowest bits.
  constexpr float round_shift = 12582912.0F;

  float clamped = x < lowest ? lowest : x;  // a NaN fails both comparisons and stays
  clamped = clamped > highest ? highest : clamped;
  const float shifted = clamped * log2_e + round_shift;
  const float n = shifted - round_shift;
  const float r = clamped - n * ln2_high - n * ln2_low;

  float q = 0.00139262504F;
  q = q * r + 0.00836323295F;
  q = q * r + 0.0416665524F;
  q = q * r + 0.166665763F;
  q = q * r + 0.5F;
  const float exp_r = r * r * q + r + 1.0F;

  // 2^n multiplies by adding n to the exponent field; the shift drops all of `shifted` but n's bits.
  const uint32_t exponent = std::bit_cast<uint32_t>(shifted) << 23;
  float y = std::bit_cast<float>(std::bit_cast<uint32_t>(exp_r) + exponent);
  y = x < lowest ? 0.0F : y;
  y = x > highest ? std::numeric_limits<float>::infinity() : y;
  return x != x ? x : y;
}

/// 1 / (1 + e^-x), in [0, 1] for every x; NaN stays NaN.
inline float fast_sigmoid(float x) {
  return 1.0F / (1.0F + fast_exp(-x));
}

/// tanh x. Up to 5/8 by x + x^3 p(x^2), p of degree 4 through the Chebyshev points (relative error 1.7e-8), which keeps
/// small values' digits; above by 1 - 2 / (1 + e^2|x|). NaN stays NaN.
inline float fast_tanh(float x) {
  const float size = x < 0.0F ? -x : x;
  const float square = x * x;
  float p = -0.00609671418F;
  p = p * square + 0.0209971797F;
  p = p * square - 0.0538509078F;
  p = p * square + 0.133327693F;
  p = p * square - 0.333333284F;
  const float near_zero = x + x * square * p;
  const float beyond = 1.0F - 2.0F / (1.0F + fast_exp(2.0F * size));
  const float signed_beyond = x < 0.0F ? -beyond : beyond;
  return size < 0.625F ? near_zero : signed_beyond;
}

}  // namespace minillm::kernels
