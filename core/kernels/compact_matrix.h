#pragma once
// Matrices in fewer bytes, for products with one row: a decoder's speed is that of reading its weights.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace minillm::kernels {

enum class CompactType : uint8_t {
  bf16,  ///< the upper half of each float, the nearest, the even one of two
  int8   ///< codes c in [-127, 127] and a factor s = max |w| / 127 for each 64 numbers along a row: w = s c
};

/// [rows, columns]. Nothing of the float matrix is kept.
class CompactMatrix {
 public:
  CompactMatrix(CompactType type, const float* values, int64_t rows, int64_t columns);

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  size_t bytes() const { return halves_.size() * sizeof(uint16_t) + codes_.size() + scales_.size() * sizeof(float); }

  /// y[r] = sum_k M[r, k] x[k], the products and sums in float.
  void multiply(const float* x, float* y) const;

  /// The numbers as they are multiplied, row-major.
  void expand(float* values) const;

 private:
  int64_t rows_;
  int64_t columns_;
  std::vector<uint16_t> halves_;  // bf16
  std::vector<int8_t> codes_;     // int8, each row padded with zeros to whole groups
  std::vector<float> scales_;
};

}  // namespace minillm::kernels
