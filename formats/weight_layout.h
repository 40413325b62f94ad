#pragma once
// Where another program keeps the elements of a matrix of ours, and the way there and back.

#include "core/tensor.h"

#include <cstdint>

namespace minillm {

/// How a matrix of ours [rows, columns] stands in a file; by default as it is.
struct WeightLayout {
  /// Heads whose rotated pairs are neighbouring rows there, (2j, 2j + 1), and rows (j, j + head/2) here; 0: the same.
  int64_t rotary_heads = 0;
  /// Columns of the file's matrix where ours is transposed in it: it is [columns, width], and ours are its columns
  /// first to first + rows (of a vector its elements); 0: not transposed.
  int64_t width = 0;
  int64_t first = 0;

  bool is_ours() const { return rotary_heads == 0 && width == 0; }
};

/// The extent of the file's matrix that holds ours of this shape.
Shape shape_in_file(const WeightLayout& layout, const Shape& ours);

/// Fills `ours`, float32 or float64, from the file's matrix of the same type.
void from_file_layout(const WeightLayout& layout, const Tensor& file, const Tensor& ours);

/// The reverse. A transposed matrix fills its columns alone.
void to_file_layout(const WeightLayout& layout, const Tensor& ours, const Tensor& file);

}  // namespace minillm
