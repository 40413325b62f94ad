#include "core/kernels/permute.h"

#include "core/kernels/elementwise.h"

#include <algorithm>
#include <cstring>

namespace minillm::kernels {

namespace {

/// Where row `row` of a dense tensor (all axes but the last) starts in the strided one.
int64_t row_offset(const Shape& shape, const Strides& strides, int64_t row) {
  int64_t offset = 0;
  for (int axis = shape.rank() - 2; axis >= 0; --axis) {
    const int64_t extent = shape[axis];
    offset += row % extent * strides[static_cast<size_t>(axis)];
    row /= extent;
  }
  return offset;
}

/// Calls visit(first element of the strided row, first element of the dense row) for every row.
template <class T, class Visit>
void for_each_row(const T* from, const Strides& strides, T* to, const Shape& shape, Visit visit) {
  const int64_t length = shape.rank() == 0 ? 1 : shape[-1];
  const int64_t rows = length == 0 ? 0 : shape.numel() / length;
  const int64_t rows_per_chunk = std::max<int64_t>(1, elements_per_chunk / std::max<int64_t>(1, length));
  parallel_for(rows, rows_per_chunk, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      visit(from + row_offset(shape, strides, row), to + row * length, length);
    }
  });
}

}  // namespace

Strides dense_strides(const Shape& shape) {
  Strides strides{};
  int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<size_t>(axis)] = step;
    step *= shape[axis];
  }
  return strides;
}

template <class T>
void permute(const T* from, const Strides& strides, T* to, const Shape& shape) {
  const int64_t step = shape.rank() == 0 ? 1 : strides[static_cast<size_t>(shape.rank() - 1)];
  for_each_row(from, strides, to, shape, [step](const T* from_row, T* to_row, int64_t length) {
    for (int64_t j = 0; j < length; ++j) {
      to_row[j] = from_row[j * step];
    }
  });
}

template <class T>
void add_permuted(const T* from, const Strides& strides, T* to, const Shape& shape) {
  const int64_t step = shape.rank() == 0 ? 1 : strides[static_cast<size_t>(shape.rank() - 1)];
  for_each_row(from, strides, to, shape, [step](const T* from_row, T* to_row, int64_t length) {
    for (int64_t j = 0; j < length; ++j) {
      to_row[j] += from_row[j * step];
    }
  });
}

template <class T>
void copy_blocks(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t block, int64_t count) {
  const int64_t blocks_per_chunk = std::max<int64_t>(1, elements_per_chunk / std::max<int64_t>(1, block));
  parallel_for(count, blocks_per_chunk, [=](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      std::memcpy(to + k * to_stride, from + k * from_stride, sizeof(T) * static_cast<size_t>(block));
    }
  });
}

template <class T>
void add_blocks(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t block, int64_t count) {
  const int64_t blocks_per_chunk = std::max<int64_t>(1, elements_per_chunk / std::max<int64_t>(1, block));
  parallel_for(count, blocks_per_chunk, [=](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const T* from_k = from + k * from_stride;
      T* to_k = to + k * to_stride;
      for (int64_t j = 0; j < block; ++j) {
        to_k[j] += from_k[j];
      }
    }
  });
}

template void permute(const float*, const Strides&, float*, const Shape&);
template void permute(const double*, const Strides&, double*, const Shape&);
template void add_permuted(const float*, const Strides&, float*, const Shape&);
template void add_permuted(const double*, const Strides&, double*, const Shape&);
template void copy_blocks(const float*, int64_t, float*, int64_t, int64_t, int64_t);
template void copy_blocks(const double*, int64_t, double*, int64_t, int64_t, int64_t);
template void add_blocks(const float*, int64_t, float*, int64_t, int64_t, int64_t);
template void add_blocks(const double*, int64_t, double*, int64_t, int64_t, int64_t);

}  // namespace minillm::kernels
