#pragma once
// Matrices as a decoder reads them: all of them for each token, so that its speed is that of reading.

#include "core/kernels/int8_matrix.h"
#include "core/kernels/panel_matrix.h"

#include <variant>

namespace minillm::kernels {

enum class DecodingType : uint8_t { float32, bf16, int8 };

/// [rows, columns] in one of these types; keeps numbers of its own.
class DecodingMatrix {
 public:
  DecodingMatrix(DecodingType type, const float* values, int64_t rows, int64_t columns);

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  size_t bytes() const;

  /// Whether products with `count` rows are for this matrix. Those with many are as well made by gemm() from expand()'s
  /// numbers, except for int8, which rounds what it multiplies.
  bool is_for(int64_t count) const;

  /// y [count, rows] = x [count, columns] M^T, added to y if `add`.
  void multiply(const float* x, int64_t count, float* y, bool add) const;

  /// The numbers as they are multiplied, row-major.
  void expand(float* values) const;

 private:
  using Matrix = std::variant<PanelMatrix<float>, PanelMatrix<uint16_t>, Int8Matrix>;
  static Matrix make(DecodingType type, const float* values, int64_t rows, int64_t columns);

  int64_t rows_;
  int64_t columns_;
  Matrix matrix_;
};

}  // namespace minillm::kernels
