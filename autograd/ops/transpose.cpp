// Axes in another order, copied: the result is dense.

#include "autograd/op_support.h"
#include "core/kernels/permute.h"

namespace minillm {

namespace {

using kernels::Strides;

template <class T>
struct TransposeNode final : Node {
  NodeId x;
  std::array<int, Shape::max_rank> order;  // axis i of the result is axis order[i] of x

  void backward(Tape& tape) override;
};

template <class T>
Var transpose_of(Var x, const std::array<int, Shape::max_rank>& order, Here here) {
  Tape& tape = x.tape();
  const Strides x_strides = kernels::dense_strides(x.shape());
  Shape shape = x.shape();
  Strides strides{};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int from_axis = order[static_cast<size_t>(axis)];
    shape.set(axis, x.shape()[from_axis]);
    strides[static_cast<size_t>(axis)] = x_strides[static_cast<size_t>(from_axis)];
  }
  auto& node = tape.make<TransposeNode<T>>("transpose", {x}, shape, x.dtype(), here);
  node.x = x.id();
  node.order = order;
  kernels::permute(x.value().as<T>(), strides, node.value.template as<T>(), shape);
  return tape.var(node);
}

// The same walk the other way: axis order[i] of dx is axis i of dy.
template <class T>
void TransposeNode<T>::backward(Tape& tape) {
  const Tensor dx = tape.gradient(x);
  const Strides dy_strides = kernels::dense_strides(grad.shape);
  Strides strides{};
  for (int axis = 0; axis < grad.shape.rank(); ++axis) {
    const int x_axis = order[static_cast<size_t>(axis)];
    strides[static_cast<size_t>(x_axis)] = dy_strides[static_cast<size_t>(axis)];
  }
  kernels::add_permuted(grad.as<T>(), strides, dx.as<T>(), dx.shape);
}

}  // namespace

Var transpose(Var x, const Axes& order, Here here) {
  check_op(order.size() == x.shape().rank(), "transpose", x.tape(), here,
           "the order must name every axis once; found {} axes for shape {}", order.size(), x.shape());
  std::array<int, Shape::max_rank> from_axis{};
  std::array<bool, Shape::max_rank> seen{};
  for (int i = 0; i < order.size(); ++i) {
    const int axis = axis_of("transpose", x, order[i], here);
    from_axis[static_cast<size_t>(i)] = axis;
    bool& taken = seen[static_cast<size_t>(axis)];
    check_op(!taken, "transpose", x.tape(), here,
             "the order must name every axis once; axis {} of shape {} comes twice", order[i], x.shape());
    taken = true;
  }
  return x.dtype() == DType::float64 ? transpose_of<double>(x, from_axis, here)
                                     : transpose_of<float>(x, from_axis, here);
}

}  // namespace minillm
