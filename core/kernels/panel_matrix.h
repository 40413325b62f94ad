#pragma once
// A matrix that is packed once into the panels of gemm_panels.h, for products with few rows: packing for each of them
// would cost more than the product.

#include "core/half.h"
#include "core/memory.h"

#include <cstddef>
#include <cstdint>

namespace minillm::kernels {

/// [rows, columns] of float, or of uint16_t: bfloat16, the nearest, the even one of two.
template <class Element>
class PanelMatrix {
 public:
  PanelMatrix(const float* values, int64_t rows, int64_t columns);

  size_t bytes() const;

  /// y [count, rows] = x [count, columns] M^T, added to y if `add`: the bits of gemm() and the numbers of expand()
  /// where there are register tiles. In parallel where there is enough to read.
  void multiply(const float* x, int64_t count, float* y, bool add) const;

  /// The numbers as they are multiplied, row-major.
  void expand(float* values) const;

 private:
  const Element* elements() const { return static_cast<const Element*>(memory_.get()); }
  /// Where element (r, k) lies: panels of rows are columns_ steps deep and lie one behind the other.
  int64_t offset(int64_t r, int64_t k) const { return (r / width_ * columns_ + k) * width_ + r % width_; }
  int64_t panels() const { return (rows_ + width_ - 1) / width_; }

  int64_t rows_;
  int64_t columns_;
  int64_t width_;  // of a panel, in rows; 1 without register tiles
  AlignedMemory memory_;
};

extern template class PanelMatrix<float>;
extern template class PanelMatrix<uint16_t>;

}  // namespace minillm::kernels
