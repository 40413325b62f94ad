#pragma once
// Copies between a dense tensor and one that is walked with other strides.

#include "core/shape.h"

#include <array>

namespace minillm::kernels {

/// Elements between neighbours along each axis.
using Strides = std::array<int64_t, Shape::max_rank>;

/// Those of a dense row-major tensor.
Strides dense_strides(const Shape& shape);

/// to[i, j, ..] = from[i * strides[0] + j * strides[1] + ..], `to` dense with the given shape.
template <class T>
void permute(const T* from, const Strides& strides, T* to, const Shape& shape);

/// The same, added to `to`.
template <class T>
void add_permuted(const T* from, const Strides& strides, T* to, const Shape& shape);

/// `count` blocks of `block` elements: to[k * to_stride + j] = from[k * from_stride + j]
template <class T>
void copy_blocks(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t block, int64_t count);

/// The same, added to `to`.
template <class T>
void add_blocks(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t block, int64_t count);

}  // namespace minillm::kernels
