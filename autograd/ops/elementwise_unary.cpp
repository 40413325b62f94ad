// Ops of one operand, element by element. Each backward is dx += dy * slope, the slope written in terms of x and y.

#include "autograd/op_support.h"
#include "core/kernels/elementwise.h"

#include <cmath>

namespace minillm {

namespace {

template <class N>
N& make_unary(const char* op, Var x, Here here) {
  N& node = x.tape().make<N>(op, {x}, x.shape(), x.dtype(), here);
  node.x = x.id();
  return node;
}

template <class T, class F>
Var apply(Var x, Node& node, F f) {
  kernels::map(x.value().as<T>(), node.value.as<T>(), node.value.numel(), f);
  return x.tape().var(node);
}

/// dx += dy * slope(x, y)
template <class T, class F>
void add_slope(Tape& tape, const Node& node, NodeId x, F slope) {
  const Tensor dx = tape.gradient(x);
  kernels::add_chain(node.grad.as<T>(), tape.value(x).as<T>(), node.value.as<T>(), dx.as<T>(), dx.numel(), slope);
}

// --- scale ---

template <class T>
struct ScaleNode final : Node {
  NodeId x;
  T factor;

  void backward(Tape& tape) override;
};

template <class T>
Var scale_of(Var x, double factor, Here here) {
  auto& node = make_unary<ScaleNode<T>>("scale", x, here);
  node.factor = static_cast<T>(factor);
  return apply<T>(x, node, [c = node.factor](T v) { return c * v; });
}

template <class T>
void ScaleNode<T>::backward(Tape& tape) {
  add_slope<T>(tape, *this, x, [c = factor](T, T) { return c; });
}

// --- add_scalar ---

struct AddScalarNode final : Node {
  NodeId x;

  void backward(Tape& tape) override;
};

template <class T>
Var add_scalar_of(Var x, double summand, Here here) {
  auto& node = make_unary<AddScalarNode>("add_scalar", x, here);
  return apply<T>(x, node, [c = static_cast<T>(summand)](T v) { return v + c; });
}

void AddScalarNode::backward(Tape& tape) {
  add_to_gradient(tape, x, grad);
}

// --- pow ---

template <class T>
struct PowNode final : Node {
  NodeId x;
  T exponent;

  void backward(Tape& tape) override;
};

template <class T>
Var pow_of(Var x, double exponent, Here here) {
  auto& node = make_unary<PowNode<T>>("pow", x, here);
  node.exponent = static_cast<T>(exponent);
  return apply<T>(x, node, [p = node.exponent](T v) { return std::pow(v, p); });
}

template <class T>
void PowNode<T>::backward(Tape& tape) {
  if (exponent == T{0}) {
    return;  // the slope 0 * x^-1 would be NaN at x = 0
  }
  add_slope<T>(tape, *this, x, [p = exponent](T v, T) { return p * std::pow(v, p - T{1}); });
}

// --- exp ---

template <class T>
struct ExpNode final : Node {
  NodeId x;

  void backward(Tape& tape) override;
};

template <class T>
Var exp_of(Var x, Here here) {
  auto& node = make_unary<ExpNode<T>>("exp", x, here);
  return apply<T>(x, node, [](T v) { return std::exp(v); });
}

template <class T>
void ExpNode<T>::backward(Tape& tape) {
  add_slope<T>(tape, *this, x, [](T, T y) { return y; });
}

// --- log ---

template <class T>
struct LogNode final : Node {
  NodeId x;

  void backward(Tape& tape) override;
};

template <class T>
Var log_of(Var x, Here here) {
  auto& node = make_unary<LogNode<T>>("log", x, here);
  return apply<T>(x, node, [](T v) { return std::log(v); });
}

template <class T>
void LogNode<T>::backward(Tape& tape) {
  add_slope<T>(tape, *this, x, [](T v, T) { return T{1} / v; });
}

// --- sqrt ---

template <class T>
struct SqrtNode final : Node {
  NodeId x;

  void backward(Tape& tape) override;
};

template <class T>
Var sqrt_of(Var x, Here here) {
  auto& node = make_unary<SqrtNode<T>>("sqrt", x, here);
  return apply<T>(x, node, [](T v) { return std::sqrt(v); });
}

template <class T>
void SqrtNode<T>::backward(Tape& tape) {
  add_slope<T>(tape, *this, x, [](T, T y) { return T{0.5} / y; });
}

// --- tanh ---

template <class T>
struct TanhNode final : Node {
  NodeId x;

  void backward(Tape& tape) override;
};

template <class T>
Var tanh_of(Var x, Here here) {
  auto& node = make_unary<TanhNode<T>>("tanh", x, here);
  return apply<T>(x, node, [](T v) { return std::tanh(v); });
}

template <class T>
void TanhNode<T>::backward(Tape& tape) {
  add_slope<T>(tape, *this, x, [](T, T y) { return T{1} - y * y; });
}

// --- sigmoid ---

template <class T>
struct SigmoidNode final : Node {
  NodeId x;

  void backward(Tape& tape) override;
};

template <class T>
Var sigmoid_of(Var x, Here here) {
  auto& node = make_unary<SigmoidNode<T>>("sigmoid", x, here);
  return apply<T>(x, node, [](T v) {
    const T e = std::exp(-std::abs(v));  // at most 1: never overflows
    return v >= T{0} ? T{1} / (T{1} + e) : e / (T{1} + e);
  });
}

template <class T>
void SigmoidNode<T>::backward(Tape& tape) {
  add_slope<T>(tape, *this, x, [](T, T y) { return y * (T{1} - y); });
}

// --- erf ---

template <class T>
struct ErfNode final : Node {
  NodeId x;

  void backward(Tape& tape) override;
};

template <class T>
Var erf_of(Var x, Here here) {
  auto& node = make_unary<ErfNode<T>>("erf", x, here);
  return apply<T>(x, node, [](T v) { return std::erf(v); });
}

template <class T>
void ErfNode<T>::backward(Tape& tape) {
  constexpr T two_over_sqrt_pi = static_cast<T>(1.12837916709551257390);
  add_slope<T>(tape, *this, x, [](T v, T) { return two_over_sqrt_pi * std::exp(-v * v); });
}

}  // namespace

Var scale(Var x, double factor, Here here) {
  return x.dtype() == DType::float64 ? scale_of<double>(x, factor, here) : scale_of<float>(x, factor, here);
}

Var add_scalar(Var x, double summand, Here here) {
  return x.dtype() == DType::float64 ? add_scalar_of<double>(x, summand, here) : add_scalar_of<float>(x, summand, here);
}

Var pow(Var x, double exponent, Here here) {
  return x.dtype() == DType::float64 ? pow_of<double>(x, exponent, here) : pow_of<float>(x, exponent, here);
}

Var exp(Var x, Here here) {
  return x.dtype() == DType::float64 ? exp_of<double>(x, here) : exp_of<float>(x, here);
}

Var log(Var x, Here here) {
  return x.dtype() == DType::float64 ? log_of<double>(x, here) : log_of<float>(x, here);
}

Var sqrt(Var x, Here here) {
  return x.dtype() == DType::float64 ? sqrt_of<double>(x, here) : sqrt_of<float>(x, here);
}

Var tanh(Var x, Here here) {
  return x.dtype() == DType::float64 ? tanh_of<double>(x, here) : tanh_of<float>(x, here);
}

Var sigmoid(Var x, Here here) {
  return x.dtype() == DType::float64 ? sigmoid_of<double>(x, here) : sigmoid_of<float>(x, here);
}

Var erf(Var x, Here here) {
  return x.dtype() == DType::float64 ? erf_of<double>(x, here) : erf_of<float>(x, here);
}

}  // namespace minillm
