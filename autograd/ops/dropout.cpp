// y = x * keep / (1 - p); nothing is saved: the mask is a function of (key, element), computed again in backward.

#include "core/kernels/dropout.h"

#include "autograd/op_support.h"

namespace minillm {

namespace {

template <class T>
struct DropoutNode final : Node {
  NodeId x;
  double p;
  RandomKey key;

  void backward(Tape& tape) override;
};

template <class T>
void forward_values(const Tape& tape, const T* x, T* y, int64_t N, double p, RandomKey key) {
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::dropout_forward(x, y, N, p, key);
      return;
    }
  }
  kernels::dropout_forward_reference(x, y, N, p, key);
}

template <class T>
Var dropout_fused(Var x, double p, RandomKey key, Here here) {
  Tape& tape = x.tape();
  auto& node = tape.make<DropoutNode<T>>("dropout", {x}, x.shape(), x.dtype(), here);
  node.x = x.id();
  node.p = p;
  node.key = key;
  forward_values(tape, x.value().as<T>(), node.value.template as<T>(), x.value().numel(), p, key);
  return tape.var(node);
}

template <class T>
void DropoutNode<T>::backward(Tape& tape) {
  const T* dy = grad.as<T>();
  T* dx = tape.gradient(x).as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::dropout_backward(dy, dx, value.numel(), p, key);
      return;
    }
  }
  kernels::dropout_backward_reference(dy, dx, value.numel(), p, key);
}

// x times a constant that holds 0 or 1 / (1 - p): the dropout of ones.
template <class T>
Var dropout_composed(Var x, double p, RandomKey key) {
  Tape& tape = x.tape();
  const int64_t N = x.value().numel();
  const Tensor mask = tape.allocate(x.shape(), x.dtype());
  T* factors = mask.as<T>();
  for (int64_t i = 0; i < N; ++i) {
    factors[i] = 1;
  }
  forward_values(tape, factors, factors, N, p, key);
  return mul(x, tape.constant(mask));
}

}  // namespace

Var dropout(Var x, double p, std::string_view stream, Here here) {
  Tape& tape = x.tape();
  check_op(p >= 0 && p < 1, "dropout", tape, here, "the probability to drop must be in [0, 1); found {}", p);
  if (p == 0 || !tape.options().training) {
    return x;
  }
  const RandomKey key = random_key(tape.random_key(), "dropout", stream);
  const bool in_double = x.dtype() == DType::float64;
  if (tape.composed()) {
    return in_double ? dropout_composed<double>(x, p, key) : dropout_composed<float>(x, p, key);
  }
  return in_double ? dropout_fused<double>(x, p, key, here) : dropout_fused<float>(x, p, key, here);
}

}  // namespace minillm
