#pragma once
// Small helpers that lessons share: tensors from numbers, sizes of numbers.

#include "core/rng.h"
#include "core/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

namespace minillm {

/// Row-major values in double.
inline Buffer values(const Shape& shape, const std::vector<double>& numbers) {
  Buffer buffer(shape, DType::float64);
  for (size_t i = 0; i < numbers.size(); ++i) {
    buffer.tensor().set(static_cast<int64_t>(i), numbers[i]);
  }
  return buffer;
}

/// Independent draws of mean 0 and variance 1; the same for the same name.
inline Buffer normal_values(const Shape& shape, DType dtype, std::string_view name) {
  Buffer buffer(shape, dtype);
  RandomStream random(random_key(1, "lesson", name));
  for (int64_t i = 0; i < shape.numel(); ++i) {
    buffer.tensor().set(i, random.normal());
  }
  return buffer;
}

inline double norm_of(const std::vector<double>& numbers) {
  double squares = 0;
  for (const double number : numbers) {
    squares += number * number;
  }
  return std::sqrt(squares);
}

/// Root of the mean square.
inline double rms_of(const std::vector<double>& numbers) {
  return norm_of(numbers) / std::sqrt(static_cast<double>(numbers.size()));
}

inline double largest_of(const std::vector<double>& numbers) {
  double largest = 0;
  for (const double number : numbers) {
    largest = std::max(largest, std::abs(number));
  }
  return largest;
}

/// max |a - b|
inline double largest_difference(const Tensor& a, const Tensor& b) {
  check(a.shape == b.shape, "tensors of shapes {} and {} have no difference", a.shape, b.shape);
  double largest = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    largest = std::max(largest, std::abs(a.at(i) - b.at(i)));
  }
  return largest;
}

}  // namespace minillm
