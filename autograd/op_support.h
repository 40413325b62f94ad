#pragma once
// What op implementations share: error context and the sum that undoes broadcasting. Included by autograd/ops/*.cpp
// only.

#include "autograd/ops.h"
#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace minillm {

/// Throws "[op] in <scope> (<file>:<line>): <message>" unless ok.
template <class... Args>
void check_op(bool ok, const char* op, const Tape& tape, Here here, fmt::format_string<Args...> message,
              Args&&... args) {
  if (!ok) {
    fail_input({.where = fmt::format("[{}] in {} ({})", op, tape.scope(), here),
                .what = fmt::format(message, std::forward<Args>(args)...)});
  }
}

/// Adds `from` to `to`, summing over the axes that broadcasting stretched: to's shape broadcasts to from's.
/// The one place where every backward undoes broadcasting.
void add_reduced(const Tensor& from, const Tensor& to);

/// Adds `contribution` to the gradient of input `id`, undoing broadcasting; does nothing when it needs none.
void add_to_gradient(Tape& tape, NodeId id, const Tensor& contribution);

/// Checks that operands share a dtype and that their shapes broadcast; returns the common shape.
Shape broadcast_operands(const char* op, Var a, Var b, Here here);

/// Checks that gain and bias are vectors as wide as the last axis of x, and that all share a dtype.
void check_gain_and_bias(const char* op, Var x, Var gain, Var bias, Here here);

/// Axis in [0, rank), negative ones counted from the end; throws the op's error otherwise.
int axis_of(const char* op, Var x, int axis, Here here);

/// The smallest of distance(i) for i in [0, count): for Node::distance_to_kink.
template <class Distance>
double nearest_of(int64_t count, Distance distance) {
  double nearest = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < count; ++i) {
    nearest = std::min(nearest, std::abs(static_cast<double>(distance(i))));
  }
  return nearest;
}

/// The values of `gradient` as T*, null when the operand needs none: what kernels with several gradients take.
template <class T>
T* data_or_null(const Tensor& gradient) {
  return gradient ? gradient.as<T>() : nullptr;
}

/// Rows of a tensor whose last axis is the row: the product of [..] in [.., d].
inline int64_t rows_of(const Shape& shape) {
  int64_t rows = 1;
  for (int axis = 0; axis + 1 < shape.rank(); ++axis) {
    rows *= shape[axis];
  }
  return rows;
}

}  // namespace minillm
