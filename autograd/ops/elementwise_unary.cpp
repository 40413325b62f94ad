// Ops of one operand, element by element: each formula beside its derivative.

#include "autograd/op_support.h"
#include "core/kernels/elementwise.h"

#include <cmath>

namespace minillm {

namespace {

/// y = f.value(x), and backward dx += dy * f.derivative(x, y)
template <class T, class F>
struct UnaryNode final : Node {
  NodeId x;
  F f;

  void backward(Tape& tape) override {
    const Tensor dx = tape.gradient(x);
    kernels::add_chain(grad.as<T>(), tape.value(x).as<T>(), tape.value(id).template as<T>(), dx.as<T>(), dx.numel(),
                       [f = f](T v, T y) { return f.derivative(v, y); });
  }
};

template <class T, class F>
Var unary_of(const char* op, Var x, F f, Here here) {
  auto& node = x.tape().make<UnaryNode<T, F>>(op, {x}, x.shape(), x.dtype(), here);
  node.x = x.tape().save(x);
  x.tape().save(node);
  node.f = f;
  kernels::map(x.value().as<T>(), node.value.template as<T>(), node.value.numel(), [f](T v) { return f.value(v); });
  return x.tape().var(node);
}

template <class F>
Var unary(const char* op, Var x, F f, Here here) {
  return x.dtype() == DType::float64 ? unary_of<double>(op, x, f, here) : unary_of<float>(op, x, f, here);
}

struct Scale {
  double factor = 1;

  template <class T>
  T value(T x) const {
    return static_cast<T>(factor) * x;
  }
  template <class T>
  T derivative(T, T) const {
    return static_cast<T>(factor);
  }
};

struct AddScalar {
  double summand = 0;

  template <class T>
  T value(T x) const {
    return x + static_cast<T>(summand);
  }
  template <class T>
  T derivative(T, T) const {
    return T{1};
  }
};

struct Pow {
  double exponent = 1;

  template <class T>
  T value(T x) const {
    return std::pow(x, static_cast<T>(exponent));
  }
  template <class T>
  T derivative(T x, T) const {
    const T p = static_cast<T>(exponent);
    return p == T{0} ? T{0} : p * std::pow(x, p - T{1});  // 0 * x^-1 would be NaN at x = 0
  }
};

struct Exp {
  template <class T>
  T value(T x) const {
    return std::exp(x);
  }
  template <class T>
  T derivative(T, T y) const {
    return y;
  }
};

struct Log {
  template <class T>
  T value(T x) const {
    return std::log(x);
  }
  template <class T>
  T derivative(T x, T) const {
    return T{1} / x;
  }
};

struct Sqrt {
  template <class T>
  T value(T x) const {
    return std::sqrt(x);
  }
  template <class T>
  T derivative(T, T y) const {
    return T{0.5} / y;
  }
};

struct Tanh {
  template <class T>
  T value(T x) const {
    return std::tanh(x);
  }
  template <class T>
  T derivative(T, T y) const {
    return T{1} - y * y;
  }
};

template <class T>
T sigmoid_of(T x) {
  const T e = std::exp(-std::abs(x));  // at most 1: never overflows
  return x >= T{0} ? T{1} / (T{1} + e) : e / (T{1} + e);
}

struct Sigmoid {
  template <class T>
  T value(T x) const {
    return sigmoid_of(x);
  }
  template <class T>
  T derivative(T, T y) const {
    return y * (T{1} - y);
  }
};

// 1 + e^x would round to 1 from x = -17 down in float: log1p keeps e^x.
struct Softplus {
  template <class T>
  T value(T x) const {
    const T rest = std::log1p(std::exp(-std::abs(x)));
    return x > T{0} ? x + rest : rest;
  }
  template <class T>
  T derivative(T x, T) const {
    return sigmoid_of(x);
  }
};

struct Erf {
  template <class T>
  T value(T x) const {
    return std::erf(x);
  }
  template <class T>
  T derivative(T x, T) const {
    constexpr T two_over_sqrt_pi = static_cast<T>(1.12837916709551257390);
    return two_over_sqrt_pi * std::exp(-x * x);
  }
};

}  // namespace

Var scale(Var x, double factor, Here here) {
  return unary("scale", x, Scale{factor}, here);
}

Var add_scalar(Var x, double summand, Here here) {
  return unary("add_scalar", x, AddScalar{summand}, here);
}

Var pow(Var x, double exponent, Here here) {
  return unary("pow", x, Pow{exponent}, here);
}

Var exp(Var x, Here here) {
  return unary("exp", x, Exp{}, here);
}

Var log(Var x, Here here) {
  return unary("log", x, Log{}, here);
}

Var sqrt(Var x, Here here) {
  return unary("sqrt", x, Sqrt{}, here);
}

Var tanh(Var x, Here here) {
  return unary("tanh", x, Tanh{}, here);
}

Var sigmoid(Var x, Here here) {
  return unary("sigmoid", x, Sigmoid{}, here);
}

Var softplus(Var x, Here here) {
  return unary("softplus", x, Softplus{}, here);
}

Var erf(Var x, Here here) {
  return unary("erf", x, Erf{}, here);
}

}  // namespace minillm
