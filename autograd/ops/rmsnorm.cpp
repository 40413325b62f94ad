// y = x * rstd * (offset + gain), rstd = (mean(x^2) + eps)^(-1/2) over the last axis.

#include "core/kernels/rmsnorm.h"
#include "autograd/op_support.h"

namespace minillm {

namespace {

template <class T>
struct RmsnormNode final : Node {
  NodeId x;
  NodeId gain;
  double eps;
  double gain_offset;
  Tensor rstd;  // [R], saved by forward

  void forward(Tape& tape) override;
  void backward(Tape& tape) override;
};

template <class T>
Var rmsnorm_fused(Var x, Var gain, double eps, double gain_offset, Here here) {
  Tape& tape = x.tape();
  auto& node = tape.make<RmsnormNode<T>>("rmsnorm", {x, gain}, x.shape(), x.dtype(), here);
  node.x = tape.save(x);
  node.gain = tape.save(gain);
  node.eps = eps;
  node.gain_offset = gain_offset;
  node.rstd = tape.allocate({rows_of(x.shape())}, x.dtype());
  node.recomputable = true;
  node.forward(tape);
  return tape.var(node);
}

template <class T>
void RmsnormNode<T>::forward(Tape& tape) {
  const int64_t R = rows_of(value.shape);
  const int64_t d = value.shape[-1];
  const T* x_values = tape.value(x).as<T>();
  const T* w = tape.value(gain).as<T>();
  T* y = value.as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::rmsnorm_forward(x_values, w, y, rstd.as<T>(), R, d, eps, gain_offset);
      return;
    }
  }
  kernels::rmsnorm_forward_reference(x_values, w, y, rstd.as<T>(), R, d, eps, gain_offset);
}

template <class T>
void RmsnormNode<T>::backward(Tape& tape) {
  const int64_t R = rows_of(value.shape);
  const int64_t d = value.shape[-1];
  const T* dy = grad.as<T>();
  const T* x_values = tape.value(x).as<T>();
  const T* w = tape.value(gain).as<T>();
  T* dx = data_or_null<T>(tape.gradient(x));
  T* dw = data_or_null<T>(tape.gradient(gain));
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      const Tape::Scratch scratch = tape.scratch({kernels::rmsnorm_partials(R), d}, DType::float32);
      float* partial = scratch.tensor().as<float>();
      kernels::rmsnorm_backward(dy, x_values, w, rstd.as<T>(), dx, dw, partial, R, d, gain_offset);
      return;
    }
  }
  kernels::rmsnorm_backward_reference(dy, x_values, w, rstd.as<T>(), dx, dw, R, d, gain_offset);
}

Var rmsnorm_composed(Var x, Var gain, double eps, double gain_offset) {
  Var mean_square = mean(mul(x, x), {-1});
  Var rstd = pow(add_scalar(mean_square, eps), -0.5);
  Var full_gain = gain_offset == 0 ? gain : add_scalar(gain, gain_offset);
  return mul(mul(x, rstd), full_gain);
}

}  // namespace

Var rmsnorm(Var x, Var gain, double eps, double gain_offset, Here here) {
  Tape& tape = x.tape();
  check_op(x.shape().rank() >= 1 && gain.shape() == Shape{x.shape()[-1]}, "rmsnorm", tape, here,
           "the gain's shape must be the last axis of x; found x {}, gain {}", x.shape(), gain.shape());
  check_op(x.dtype() == gain.dtype(), "rmsnorm", tape, here, "operands must share a dtype; found {} and {}", x.dtype(),
           gain.dtype());
  if (tape.composed()) {
    return rmsnorm_composed(x, gain, eps, gain_offset);
  }
  return x.dtype() == DType::float64 ? rmsnorm_fused<double>(x, gain, eps, gain_offset, here)
                                     : rmsnorm_fused<float>(x, gain, eps, gain_offset, here);
}

Var rmsnorm(Var x, double eps, Here here) {
  return rmsnorm(x, x.tape().filled({x.shape()[-1]}, 1, x.dtype()), eps, 0, here);
}

}  // namespace minillm
