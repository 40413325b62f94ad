// The largest value along one axis, which stays with extent 1.

#include "autograd/op_support.h"
#include "core/kernels/elementwise.h"

#include <cmath>

namespace minillm {

namespace {

/// x [outer, N, inner] -> y [outer, 1, inner]
template <class T>
struct MaxNode final : Node {
  NodeId x;
  int64_t N;
  int64_t inner;
  Tensor winner;  // [outer, inner]: the first place of the largest value along the axis; saved for backward

  void backward(Tape& tape) override;
};

/// The first largest of N values `step` apart; the first NaN if there is one.
template <class T>
int64_t place_of_largest(const T* x, int64_t N, int64_t step) {
  int64_t best = 0;
  for (int64_t n = 1; n < N && !std::isnan(x[best * step]); ++n) {
    const T candidate = x[n * step];
    if (candidate > x[best * step] || std::isnan(candidate)) {
      best = n;
    }
  }
  return best;
}

template <class T>
Var max_of(Var x, int axis, Here here) {
  Tape& tape = x.tape();
  Shape shape = x.shape();
  int64_t inner = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) {
    inner *= shape[i];
  }
  const int64_t N = shape[axis];
  shape.set(axis, 1);
  auto& node = tape.make<MaxNode<T>>("max", {x}, shape, x.dtype(), here);
  node.x = x.id();
  node.N = N;
  node.inner = inner;
  if (node.needs_grad) {
    node.winner = tape.allocate({shape.numel()}, DType::int32);
  }
  const T* x_values = x.value().as<T>();
  T* y = node.value.template as<T>();
  int32_t* winner = node.winner ? node.winner.template as<int32_t>() : nullptr;
  parallel_for(shape.numel(), 256, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* first = x_values + i / inner * N * inner + i % inner;
      const int64_t n = place_of_largest(first, N, inner);
      y[i] = first[n * inner];
      if (winner != nullptr) {
        winner[i] = static_cast<int32_t>(n);
      }
    }
  });
  return tape.var(node);
}

template <class T>
void MaxNode<T>::backward(Tape& tape) {
  const T* dy = grad.as<T>();
  const int32_t* winners = winner.as<int32_t>();
  T* dx = tape.gradient(x).as<T>();
  for (int64_t i = 0; i < value.numel(); ++i) {
    const int64_t first = i / inner * N * inner + i % inner;
    dx[first + winners[i] * inner] += dy[i];
  }
}

}  // namespace

Var max(Var x, int axis, Here here) {
  const int from_front = axis_of("max", x, axis, here);
  check_op(x.shape()[from_front] >= 1, "max", x.tape(), here, "axis {} of shape {} has no elements", axis, x.shape());
  return x.dtype() == DType::float64 ? max_of<double>(x, from_front, here) : max_of<float>(x, from_front, here);
}

}  // namespace minillm
