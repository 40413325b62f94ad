// y = (x - mean) * (variance + eps)^(-1/2) * gain + bias, each channel over all rows.

#include "core/kernels/batchnorm.h"

#include "autograd/op_support.h"

namespace minillm {

namespace {

template <class T>
struct BatchnormNode final : Node {
  NodeId x;
  NodeId gain;
  double eps;
  Tensor mean;      // [d], saved by forward
  Tensor variance;  // [d], saved by forward

  void backward(Tape& tape) override;
};

template <class T>
Normalized batchnorm_fused(Var x, Var gain, Var bias, double eps, Here here) {
  Tape& tape = x.tape();
  const int64_t R = rows_of(x.shape());
  const int64_t d = x.shape()[-1];
  auto& node = tape.make<BatchnormNode<T>>("batchnorm", {x, gain, bias}, x.shape(), x.dtype(), here);
  node.x = tape.save(x);
  node.gain = tape.save(gain);
  node.eps = eps;
  node.mean = tape.allocate({d}, x.dtype());
  node.variance = tape.allocate({d}, x.dtype());
  const T* x_values = x.value().as<T>();
  const T* w = gain.value().as<T>();
  const T* b = bias.value().as<T>();
  T* y = node.value.template as<T>();
  T* mean = node.mean.template as<T>();
  T* variance = node.variance.template as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      const Tape::Scratch scratch = tape.scratch({kernels::batchnorm_scratch(R, d)}, DType::float32);
      kernels::batchnorm_forward(x_values, w, b, y, mean, variance, scratch.tensor().as<float>(), R, d, eps);
      return {tape.var(node), node.mean, node.variance};
    }
  }
  kernels::batchnorm_forward_reference(x_values, w, b, y, mean, variance, R, d, eps);
  return {tape.var(node), node.mean, node.variance};
}

template <class T>
void BatchnormNode<T>::backward(Tape& tape) {
  const int64_t R = rows_of(value.shape);
  const int64_t d = value.shape[-1];
  const T* dy = grad.as<T>();
  const T* x_values = tape.value(x).as<T>();
  const T* w = tape.value(gain).as<T>();
  T* dx = data_or_null<T>(tape.gradient(x));
  T* dw = data_or_null<T>(tape.gradient(gain));
  T* db = data_or_null<T>(tape.gradient(inputs[2]));
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      const Tape::Scratch scratch = tape.scratch({kernels::batchnorm_scratch(R, d)}, DType::float32);
      kernels::batchnorm_backward(dy, x_values, w, mean.as<T>(), variance.as<T>(), dx, dw, db,
                                  scratch.tensor().as<float>(), R, d, eps);
      return;
    }
  }
  kernels::batchnorm_backward_reference(dy, x_values, w, mean.as<T>(), variance.as<T>(), dx, dw, db, R, d, eps);
}

Normalized batchnorm_composed(Var x, Var gain, Var bias, double eps) {
  const Shape shape = x.shape();
  Var rows = reshape(x, {rows_of(shape), shape[-1]});
  Var mean_of_rows = mean(rows, {0});
  Var centered = sub(rows, mean_of_rows);
  Var variance = mean(mul(centered, centered), {0});
  Var rstd = pow(add_scalar(variance, eps), -0.5);
  Var y = reshape(add(mul(mul(centered, rstd), gain), bias), shape);
  return {y, mean_of_rows.value(), variance.value()};
}

}  // namespace

Normalized batchnorm(Var x, Var gain, Var bias, double eps, Here here) {
  Tape& tape = x.tape();
  check_gain_and_bias("batchnorm", x, gain, bias, here);
  check_op(x.shape().numel() > 0, "batchnorm", tape, here, "a mean over no rows; found x {}", x.shape());
  if (tape.composed()) {
    return batchnorm_composed(x, gain, bias, eps);
  }
  return x.dtype() == DType::float64 ? batchnorm_fused<double>(x, gain, bias, eps, here)
                                     : batchnorm_fused<float>(x, gain, bias, eps, here);
}

}  // namespace minillm
