#pragma once
// 16-bit floating numbers, as weights are kept in. Widening to float is exact.

#include <bit>
#include <cmath>
#include <cstdint>

namespace minillm {

/// bfloat16: the upper half of a float.
inline float bfloat16_to_float(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

/// The nearest bfloat16, the even one of two. For finite values.
inline uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// IEEE 754 binary16: 1 sign bit, 5 exponent bits (bias 15), 10 fraction bits.
inline float half_to_float(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fU;
  const uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t wide_exponent = exponent == 0x1f ? 0xff : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide_exponent << 23 | fraction << 13);
}

/// The nearest binary16, the even one of two; infinity from 65,520 on.
inline uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const float magnitude = std::abs(value);
  if (std::isnan(value)) {
    return sign | 0x7e00U;
  }
  if (magnitude >= 65520.0F) {
    return sign | 0x7c00U;
  }
  if (magnitude < 0x1p-14F) {  // subnormal: a whole number of 2^-24
    return sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24F));
  }
  const uint32_t rounded = (bits & 0x7fffffffU) + 0xfffU + ((bits >> 13) & 1U);  // may carry into the exponent
  return sign | static_cast<uint16_t>((rounded >> 13) - ((127U - 15U) << 10));
}

}  // namespace minillm
