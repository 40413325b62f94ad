// Sums and means over axes; the reduced axes stay with extent 1.

#include "autograd/op_support.h"
#include "core/kernels/broadcast.h"

namespace minillm {

namespace {

template <class T>
struct SumNode final : Node {
  NodeId x;
  T factor;  // 1 for a sum, 1 / (elements summed) for a mean

  void backward(Tape& tape) override;
};

template <class T>
Var sum_of(const char* op, Var x, const Shape& shape, double factor, Here here) {
  Tape& tape = x.tape();
  auto& node = tape.make<SumNode<T>>(op, {x}, shape, x.dtype(), here);
  node.x = x.id();
  node.factor = static_cast<T>(factor);
  fill_zero(node.value);
  add_reduced(x.value(), node.value);
  if (factor != 1.0) {
    const T* y = node.value.template as<T>();
    kernels::map(y, node.value.template as<T>(), node.value.numel(), [c = node.factor](T v) { return c * v; });
  }
  return tape.var(node);
}

// forward: y = factor * (sum of x), so each summand gets factor * dy
template <class T>
void SumNode<T>::backward(Tape& tape) {
  const Tensor dx_sum = tape.gradient(x);
  const T* dy = grad.as<T>();
  T* dx = dx_sum.as<T>();
  kernels::for_each_pair(kernels::merge_axes(dx_sum.shape, grad.shape),
                         [=, c = factor](int64_t i, int64_t, int64_t iy) { dx[i] += c * dy[iy]; });
}

Var sum_or_mean(const char* op, Var x, const Shape& shape, double factor, Here here) {
  return x.dtype() == DType::float64 ? sum_of<double>(op, x, shape, factor, here)
                                     : sum_of<float>(op, x, shape, factor, here);
}

Shape reduced_shape(const char* op, Var x, const Axes& axes, Here here) {
  Shape shape = x.shape();
  for (int axis : axes) {
    shape.set(axis_of(op, x, axis, here), 1);
  }
  return shape;
}

}  // namespace

Var sum(Var x, const Axes& axes, Here here) {
  return sum_or_mean("sum", x, reduced_shape("sum", x, axes, here), 1.0, here);
}

Var mean(Var x, const Axes& axes, Here here) {
  const Shape shape = reduced_shape("mean", x, axes, here);
  check_op(x.shape().numel() > 0, "mean", x.tape(), here, "the mean of no elements is undefined; found shape {}",
           x.shape());
  const double summands = static_cast<double>(x.shape().numel()) / static_cast<double>(shape.numel());
  return sum_or_mean("mean", x, shape, 1.0 / summands, here);
}

Var sum_all(Var x, Here here) {
  return sum_or_mean("sum_all", x, {}, 1.0, here);
}

}  // namespace minillm
