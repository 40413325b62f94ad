// y = (x - mean) * rstd * gain + bias, rstd = (variance + eps)^(-1/2), over the last axis.

#include "core/kernels/layernorm.h"

#include "autograd/op_support.h"

namespace minillm {

namespace {

template <class T>
struct LayernormNode final : Node {
  NodeId x;
  NodeId gain;
  NodeId bias;
  double eps;
  Tensor mean;  // [R], saved by forward
  Tensor rstd;  // [R], saved by forward

  void forward(Tape& tape) override;
  void backward(Tape& tape) override;
};

template <class T>
Var layernorm_fused(Var x, Var gain, Var bias, double eps, Here here) {
  Tape& tape = x.tape();
  const int64_t R = rows_of(x.shape());
  auto& node = tape.make<LayernormNode<T>>("layernorm", {x, gain, bias}, x.shape(), x.dtype(), here);
  node.x = tape.save(x);
  node.gain = tape.save(gain);
  node.bias = tape.save(bias);
  node.eps = eps;
  node.mean = tape.allocate({R}, x.dtype());
  node.rstd = tape.allocate({R}, x.dtype());
  node.recomputable = true;
  node.forward(tape);
  return tape.var(node);
}

template <class T>
void LayernormNode<T>::forward(Tape& tape) {
  const int64_t R = rows_of(value.shape);
  const int64_t d = value.shape[-1];
  const T* x_values = tape.value(x).as<T>();
  const T* w = tape.value(gain).as<T>();
  const T* b = tape.value(bias).as<T>();
  T* y = value.as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::layernorm_forward(x_values, w, b, y, mean.as<T>(), rstd.as<T>(), R, d, eps);
      return;
    }
  }
  kernels::layernorm_forward_reference(x_values, w, b, y, mean.as<T>(), rstd.as<T>(), R, d, eps);
}

template <class T>
void LayernormNode<T>::backward(Tape& tape) {
  const int64_t R = rows_of(value.shape);
  const int64_t d = value.shape[-1];
  const T* dy = grad.as<T>();
  const T* x_values = tape.value(x).as<T>();
  const T* w = tape.value(gain).as<T>();
  T* dx = data_or_null<T>(tape.gradient(x));
  T* dw = data_or_null<T>(tape.gradient(gain));
  T* db = data_or_null<T>(tape.gradient(bias));
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      const Tape::Scratch scratch = tape.scratch({kernels::layernorm_partials(R), 2, d}, DType::float32);
      float* partial = scratch.tensor().as<float>();
      kernels::layernorm_backward(dy, x_values, w, mean.as<T>(), rstd.as<T>(), dx, dw, db, partial, R, d);
      return;
    }
  }
  kernels::layernorm_backward_reference(dy, x_values, w, mean.as<T>(), rstd.as<T>(), dx, dw, db, R, d);
}

Var layernorm_composed(Var x, Var gain, Var bias, double eps) {
  Var centered = sub(x, mean(x, {-1}));
  Var variance = mean(mul(centered, centered), {-1});
  Var rstd = pow(add_scalar(variance, eps), -0.5);
  return add(mul(mul(centered, rstd), gain), bias);
}

}  // namespace

Var layernorm(Var x, Var gain, Var bias, double eps, Here here) {
  Tape& tape = x.tape();
  check_gain_and_bias("layernorm", x, gain, bias, here);
  if (tape.composed()) {
    return layernorm_composed(x, gain, bias, eps);
  }
  return x.dtype() == DType::float64 ? layernorm_fused<double>(x, gain, bias, eps, here)
                                     : layernorm_fused<float>(x, gain, bias, eps, here);
}

}  // namespace minillm
