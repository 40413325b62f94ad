#pragma once
// Products of numbers that are rounded to eight bits: a group of 64 shares a factor s = max |v| / 127, and each number
// is a code c in [-127, 127]: v = s c. The products of codes are added as whole numbers, so exactly.

#include "core/memory.h"

#include <cstddef>
#include <cstdint>

namespace minillm::kernels {

inline constexpr int64_t int8_group = 64;

/// How many groups `count` numbers of a row take.
constexpr int64_t int8_groups(int64_t count) {
  return (count + int8_group - 1) / int8_group;
}

/// The codes of a row, int8_group for each group with zeros behind the last number, and the factors, one a group.
void round_to_int8(const float* values, int64_t count, int8_t* codes, float* scales);

/// [rows, columns], rounded group by group along its rows.
class Int8Matrix {
 public:
  Int8Matrix(const float* values, int64_t rows, int64_t columns);

  size_t bytes() const;

  /// y [count, rows] = x [count, columns] M^T, added to y if `add`, where the rows of x are rounded likewise. In
  /// parallel where there is enough to read.
  void multiply(const float* x, int64_t count, float* y, bool add) const;

  /// The numbers of the matrix, row-major.
  void expand(float* values) const;

 private:
  int64_t groups() const { return int8_groups(columns_); }
  uint8_t* shifted_row(int64_t r) const { return static_cast<uint8_t*>(memory_.get()) + r * groups() * int8_group; }
  float* scales_of_row(int64_t r) const { return reinterpret_cast<float*>(shifted_row(rows_)) + r * groups(); }

  int64_t rows_;
  int64_t columns_;
  AlignedMemory memory_;  // codes + 128 [rows, groups, 64], then factors [rows, groups]
};

// What its products are made of.

/// A row to multiply by.
struct Int8Row {
  const int8_t* codes;    ///< [groups, 64]
  const float* scales;    ///< [groups]
  const int32_t* starts;  ///< [groups, 16]: -128 times the sum of four codes, which takes the 128 off again
  int64_t groups;
};

/// y[r] = sum over g of scales[r, g] x.scales[g] (codes of group g of row r . x.codes of group g), added to y[r] if
/// `add`. `shifted` [rows, groups, 64] holds the rows' codes plus 128: processors multiply unsigned by signed bytes.
/// Within a group sixteen sums of four products each are added over the groups in float: the same bits everywhere.
void int8_products(const uint8_t* shifted, const float* scales, int64_t rows, const Int8Row& x, float* y, bool add);

/// The same by the loops that every processor has.
void int8_products_portable(const uint8_t* shifted, const float* scales, int64_t rows, const Int8Row& x, float* y,
                            bool add);

}  // namespace minillm::kernels
