// Softmax over the last axis.

#include "core/kernels/softmax.h"
#include "autograd/op_support.h"

namespace minillm {

namespace {

template <class T>
struct SoftmaxNode final : Node {
  NodeId x;  // backward needs the result alone, which is `value`

  void backward(Tape& tape) override;
};

template <class T>
Var softmax_of(Var x, Here here) {
  Tape& tape = x.tape();
  auto& node = tape.make<SoftmaxNode<T>>("softmax", {x}, x.shape(), x.dtype(), here);
  node.x = x.id();
  tape.save(node);
  const int64_t R = rows_of(x.shape());
  const int64_t N = x.shape()[-1];
  const T* x_values = x.value().as<T>();
  T* y = node.value.template as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::softmax_forward(x_values, y, R, N);
      return tape.var(node);
    }
  }
  kernels::softmax_forward_reference(x_values, y, R, N);
  return tape.var(node);
}

template <class T>
void SoftmaxNode<T>::backward(Tape& tape) {
  const int64_t R = rows_of(value.shape);
  const int64_t N = value.shape[-1];
  const T* dy = grad.as<T>();
  const T* y = tape.value(id).template as<T>();
  T* dx = tape.gradient(x).as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::softmax_backward(dy, y, dx, R, N);
      return;
    }
  }
  kernels::softmax_backward_reference(dy, y, dx, R, N);
}

}  // namespace

Var softmax(Var x, Here here) {
  axis_of("softmax", x, -1, here);
  return x.dtype() == DType::float64 ? softmax_of<double>(x, here) : softmax_of<float>(x, here);
}

}  // namespace minillm
