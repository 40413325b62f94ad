#pragma once
// Loops over two operands under their common shape (right-aligned broadcasting), and the sum that undoes the
// stretching.

#include "core/kernels/elementwise.h"
#include "core/shape.h"

#include <algorithm>
#include <array>

namespace minillm::kernels {

/// How two operands walk through their common shape: axes of one element are dropped and neighbouring axes are merged
/// where both operands allow it. Equal shapes become one axis; a row [d] or a column [.., 1] against [.., d] become
/// two, so the common cases run in long inner loops without being cases of their own.
struct Broadcast {
  int rank = 0;  ///< at least 1
  std::array<int64_t, Shape::max_rank> extent{};
  std::array<int64_t, Shape::max_rank> a_step{};  ///< from one element to the next along an axis; 0: stretched
  std::array<int64_t, Shape::max_rank> b_step{};

  int64_t rows() const;  ///< product of all extents but the last
  int64_t row_length() const { return extent[static_cast<size_t>(rank - 1)]; }
  int64_t a_offset(int64_t row) const { return offset(row, a_step); }
  int64_t b_offset(int64_t row) const { return offset(row, b_step); }

 private:
  int64_t offset(int64_t row, const std::array<int64_t, Shape::max_rank>& step) const;
};

/// The shapes must broadcast.
Broadcast merge_axes(const Shape& a, const Shape& b);

/// One run along the last axis, where a step is 0 or 1: constants, so that the loop vectorises.
template <int a_step, int b_step, class Body>
void broadcast_run(int64_t i, int64_t a, int64_t b, int64_t count, Body body) {
  for (int64_t j = 0; j < count; ++j) {
    body(i + j, a + j * a_step, b + j * b_step);
  }
}

template <class Body>
void broadcast_run(const Broadcast& pair, int64_t i, int64_t a, int64_t b, int64_t count, Body body) {
  const size_t last = static_cast<size_t>(pair.rank - 1);
  if (pair.a_step[last] == 0) {
    broadcast_run<0, 1>(i, a, b, count, body);
  } else if (pair.b_step[last] == 0) {
    broadcast_run<1, 0>(i, a, b, count, body);
  } else {
    broadcast_run<1, 1>(i, a, b, count, body);
  }
}

/// Calls body(i, ia, ib) for every element i of the common shape; ia and ib are its places in the operands. In
/// parallel: body may write to place i alone.
template <class Body>
void for_each_pair(const Broadcast& pair, Body body) {
  const int64_t length = pair.row_length();
  if (pair.rank == 1) {
    parallel_for(length, elements_per_chunk, [&pair, body](int64_t begin, int64_t end) {
      broadcast_run(pair, begin, begin * pair.a_step[0], begin * pair.b_step[0], end - begin, body);
    });
    return;
  }
  const int64_t rows_per_chunk = std::max<int64_t>(1, elements_per_chunk / std::max<int64_t>(1, length));
  parallel_for(pair.rows(), rows_per_chunk, [&pair, body, length](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      broadcast_run(pair, row * length, pair.a_offset(row), pair.b_offset(row), length, body);
    }
  });
}

/// to += from, summed over the axes along which `to` is stretched: a is from (never stretched), b is to.
template <class T>
void add_reduced(const Broadcast& axes, const T* from, T* to);

}  // namespace minillm::kernels
