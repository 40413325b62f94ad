#pragma once
// Initial weights and tokens of the golden curves as formulas: the same bits as torch_golden.py, nothing stored.
//
// A value is a pure function of (tensor name, row-major index). Every step but one is exact in double, and that one
// (std * sqrt(3) * x) is a single product, so neither contraction to fma nor the order of evaluation can change a bit.

#include <cmath>
#include <cstdint>
#include <string_view>

namespace minillm::golden {

inline constexpr double weight_std = 0.08;

/// FNV-1a of the name, advanced by index + 1 golden ratios, through the finalizer of splitmix64 (Steele et al. 2014).
inline uint64_t bits(std::string_view name, uint64_t index) {
  uint64_t key = 0xCBF29CE484222325U;
  for (const char c : name) {
    key = (key ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  }
  uint64_t z = key + (index + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

inline bool ends_with(std::string_view name, std::string_view ending) {
  return name.size() >= ending.size() && name.substr(name.size() - ending.size()) == ending;
}

/// Element `index` of tensor `name` (Hugging Face's name, "model.layers.0.self_attn.q_proj.weight"), a float32 value.
/// With x uniform in [-1, 1): matrices weight_std * sqrt(3) * x; gains (...norm.weight) 1 + x/8, or x/8 where the norm
/// is zero-centered; biases x/16, so that a forgotten bias or gain shows.
inline double value(std::string_view name, uint64_t index, bool zero_centered) {
  const double u = static_cast<double>(bits(name, index) >> 40U) * 0x1p-24;
  const double x = 2.0 * u - 1.0;
  double result = weight_std * std::sqrt(3.0) * x;
  if (ends_with(name, "norm.weight")) {
    result = zero_centered ? x / 8.0 : 1.0 + x / 8.0;
  } else if (ends_with(name, ".bias")) {
    result = x / 16.0;
  }
  return static_cast<double>(static_cast<float>(result));
}

/// Element `index` of stream `name`, uniform in [-1, 1): inputs of a single part.
inline double uniform(std::string_view name, uint64_t index) {
  return 2.0 * static_cast<double>(bits(name, index) >> 40U) * 0x1p-24 - 1.0;
}

/// Element `index` of a weight of a single part: large enough that every formula bends.
inline double part_value(std::string_view name, uint64_t index, bool zero_centered) {
  const double x = uniform(name, index);
  if (ends_with(name, "norm.weight")) {
    return zero_centered ? x / 4.0 : 1.0 + x / 4.0;
  }
  return ends_with(name, "bias") ? x / 4.0 : 0.75 * x;
}

/// Token i of the golden corpus, in [0, 97). Training takes i from 0, validation from 10000.
inline int32_t token(int64_t i) {
  return static_cast<int32_t>((7 * i * i + 3 * i + 11 * (i / 5)) % 97);
}

}  // namespace minillm::golden
