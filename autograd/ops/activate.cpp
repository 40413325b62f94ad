// y = act(x), element by element.

#include "autograd/op_support.h"
#include "core/kernels/activation.h"

#include <numbers>

namespace minillm {

namespace {

template <class T>
struct ActivateNode final : Node {
  NodeId x;
  Activation kind;

  void forward(Tape& tape) override;
  void backward(Tape& tape) override;
  double distance_to_kink(Tape& tape) const override;
};

template <class T>
Var activate_fused(Var x, Activation kind, Here here) {
  Tape& tape = x.tape();
  auto& node = tape.make<ActivateNode<T>>(kernels::name_of(kind), {x}, x.shape(), x.dtype(), here);
  node.x = tape.save(x);
  node.kind = kind;
  node.recomputable = true;
  node.forward(tape);
  return tape.var(node);
}

template <class T>
void ActivateNode<T>::forward(Tape& tape) {
  const T* x_values = tape.value(x).as<T>();
  T* y = value.as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::activate_forward(x_values, y, value.numel(), kind);
      return;
    }
  }
  kernels::activate_forward_reference(x_values, y, value.numel(), kind);
}

template <class T>
void ActivateNode<T>::backward(Tape& tape) {
  const T* dy = grad.as<T>();
  const T* x_values = tape.value(x).as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      const GradientTarget dx = tape.gradient_target(x);
      kernels::activate_backward(dy, x_values, dx.tensor.as<float>(), value.numel(), kind, dx.fresh);
      return;
    }
  }
  kernels::activate_backward_reference(dy, x_values, tape.gradient(x).as<T>(), value.numel(), kind);
}

template <class T>
double ActivateNode<T>::distance_to_kink(Tape& tape) const {
  if (kind != Activation::relu) {
    return Node::distance_to_kink(tape);
  }
  const T* x_values = tape.value(x).as<T>();
  return nearest_of(value.numel(), [=](int64_t i) { return x_values[i]; });
}

/// 1 where x > 0, else 0: a constant, so nothing flows back through it.
template <class T>
Var is_positive(Var x) {
  Tape& tape = x.tape();
  const Tensor mask = tape.allocate(x.shape(), x.dtype());
  const T* values = x.value().as<T>();
  T* ones = mask.as<T>();
  for (int64_t i = 0; i < mask.numel(); ++i) {
    ones[i] = values[i] > T{0} ? T{1} : T{0};
  }
  return tape.constant(mask);
}

Var activate_composed(Var x, Activation kind) {
  switch (kind) {
    case Activation::relu:
      // Not maximum(x, 0), which splits the gradient where both are equal: the slope at 0 is 0, as in PyTorch.
      return mul(x, x.dtype() == DType::float64 ? is_positive<double>(x) : is_positive<float>(x));
    case Activation::silu: return mul(x, sigmoid(x));
    case Activation::sigmoid: return sigmoid(x);
    case Activation::identity: return x;
    case Activation::gelu: {
      Var cdf = scale(add_scalar(erf(scale(x, 1 / std::numbers::sqrt2)), 1), 0.5);
      return mul(x, cdf);
    }
    case Activation::gelu_tanh: break;
  }
  const double root = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
  Var cube = mul(x, mul(x, x));
  Var u = scale(add(x, scale(cube, 0.044715)), root);
  return mul(x, scale(add_scalar(tanh(u), 1), 0.5));
}

}  // namespace

Var activate(Var x, Activation kind, Here here) {
  if (x.tape().composed()) {
    return activate_composed(x, kind);
  }
  return x.dtype() == DType::float64 ? activate_fused<double>(x, kind, here) : activate_fused<float>(x, kind, here);
}

}  // namespace minillm
