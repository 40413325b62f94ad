// a + b, a - b, a * b, a / b, max(a, b) with right-aligned broadcasting.

#include "autograd/op_support.h"
#include "core/kernels/broadcast.h"

namespace minillm {

namespace {

using kernels::Broadcast;
using kernels::for_each_pair;

template <class N>
N& make_binary(const char* op, Var a, Var b, Here here) {
  const Shape shape = broadcast_operands(op, a, b, here);
  N& node = a.tape().make<N>(op, {a, b}, shape, a.dtype(), here);
  node.a = a.id();
  node.b = b.id();
  return node;
}

/// Adds contribution(i, ia, ib), one value for each element of the result, to the gradient of the operand `id`. An
/// operand that was stretched gets the sum, by way of scratch memory.
template <class T, class F>
void add_contribution(Tape& tape, NodeId id, const Broadcast& pair, const Shape& shape, F contribution) {
  const Tensor gradient = tape.gradient(id);
  if (!gradient) {
    return;
  }
  if (gradient.shape == shape) {
    T* d = gradient.as<T>();
    for_each_pair(pair, [=](int64_t i, int64_t ia, int64_t ib) { d[i] += contribution(i, ia, ib); });
    return;
  }
  const Tape::Scratch stretched = tape.scratch(shape, dtype_of<T>());
  T* d = stretched.tensor().as<T>();
  for_each_pair(pair, [=](int64_t i, int64_t ia, int64_t ib) { d[i] = contribution(i, ia, ib); });
  add_reduced(stretched.tensor(), gradient);
}

// --- add ---

template <class T>
struct AddNode final : Node {
  NodeId a;
  NodeId b;

  void backward(Tape& tape) override;
};

template <class T>
Var add_of(Var a, Var b, Here here) {
  auto& node = make_binary<AddNode<T>>("add", a, b, here);
  const T* a_values = a.value().as<T>();
  const T* b_values = b.value().as<T>();
  T* y = node.value.template as<T>();
  for_each_pair(kernels::merge_axes(a.shape(), b.shape()),
                [=](int64_t i, int64_t ia, int64_t ib) { y[i] = a_values[ia] + b_values[ib]; });
  return a.tape().var(node);
}

template <class T>
void AddNode<T>::backward(Tape& tape) {
  add_to_gradient(tape, a, grad);
  if (!tape.move_gradient(*this, b)) {
    add_to_gradient(tape, b, grad);
  }
}

// --- sub ---

template <class T>
struct SubNode final : Node {
  NodeId a;
  NodeId b;

  void backward(Tape& tape) override;
};

template <class T>
Var sub_of(Var a, Var b, Here here) {
  auto& node = make_binary<SubNode<T>>("sub", a, b, here);
  const T* a_values = a.value().as<T>();
  const T* b_values = b.value().as<T>();
  T* y = node.value.template as<T>();
  for_each_pair(kernels::merge_axes(a.shape(), b.shape()),
                [=](int64_t i, int64_t ia, int64_t ib) { y[i] = a_values[ia] - b_values[ib]; });
  return a.tape().var(node);
}

template <class T>
void SubNode<T>::backward(Tape& tape) {
  add_to_gradient(tape, a, grad);
  const Broadcast pair = kernels::merge_axes(tape.shape(a), tape.shape(b));
  const T* dy = grad.as<T>();
  add_contribution<T>(tape, b, pair, value.shape, [=](int64_t i, int64_t, int64_t) { return -dy[i]; });
}

// --- mul ---

template <class T>
struct MulNode final : Node {
  NodeId a;
  NodeId b;

  void backward(Tape& tape) override;
};

template <class T>
Var mul_of(Var a, Var b, Here here) {
  auto& node = make_binary<MulNode<T>>("mul", a, b, here);
  a.tape().save(a);
  a.tape().save(b);
  const T* a_values = a.value().as<T>();
  const T* b_values = b.value().as<T>();
  T* y = node.value.template as<T>();
  for_each_pair(kernels::merge_axes(a.shape(), b.shape()),
                [=](int64_t i, int64_t ia, int64_t ib) { y[i] = a_values[ia] * b_values[ib]; });
  return a.tape().var(node);
}

// forward: y = a b, so da = dy b and db = dy a
template <class T>
void MulNode<T>::backward(Tape& tape) {
  const Broadcast pair = kernels::merge_axes(tape.shape(a), tape.shape(b));
  const T* dy = grad.as<T>();
  const T* a_values = tape.value(a).as<T>();
  const T* b_values = tape.value(b).as<T>();
  add_contribution<T>(tape, a, pair, value.shape, [=](int64_t i, int64_t, int64_t ib) { return dy[i] * b_values[ib]; });
  add_contribution<T>(tape, b, pair, value.shape, [=](int64_t i, int64_t ia, int64_t) { return dy[i] * a_values[ia]; });
}

// --- div ---

template <class T>
struct DivNode final : Node {
  NodeId a;
  NodeId b;

  void backward(Tape& tape) override;
};

template <class T>
Var div_of(Var a, Var b, Here here) {
  auto& node = make_binary<DivNode<T>>("div", a, b, here);
  a.tape().save(b);
  a.tape().save(node);
  const T* a_values = a.value().as<T>();
  const T* b_values = b.value().as<T>();
  T* y = node.value.template as<T>();
  for_each_pair(kernels::merge_axes(a.shape(), b.shape()),
                [=](int64_t i, int64_t ia, int64_t ib) { y[i] = a_values[ia] / b_values[ib]; });
  return a.tape().var(node);
}

// forward: y = a / b, so da = dy / b and db = -dy a / b^2 = -dy y / b
template <class T>
void DivNode<T>::backward(Tape& tape) {
  const Broadcast pair = kernels::merge_axes(tape.shape(a), tape.shape(b));
  const T* dy = grad.as<T>();
  const T* y = tape.value(id).template as<T>();
  const T* b_values = tape.value(b).as<T>();
  add_contribution<T>(tape, a, pair, value.shape, [=](int64_t i, int64_t, int64_t ib) { return dy[i] / b_values[ib]; });
  add_contribution<T>(tape, b, pair, value.shape,
                      [=](int64_t i, int64_t, int64_t ib) { return -dy[i] * y[i] / b_values[ib]; });
}

// --- maximum ---

template <class T>
struct MaximumNode final : Node {
  NodeId a;
  NodeId b;

  void backward(Tape& tape) override;
  double distance_to_kink(Tape& tape) const override;
};

/// NaN when either is: a comparison alone would hide one.
template <class T>
T larger(T a, T b) {
  if (a >= b) {
    return a;
  }
  return b > a ? b : a + b;
}

/// The share of the gradient that goes to `mine`.
template <class T>
T share_of(T mine, T other) {
  if (mine == other) {
    return T{0.5};
  }
  return mine > other ? T{1} : T{0};
}

template <class T>
Var maximum_of(Var a, Var b, Here here) {
  auto& node = make_binary<MaximumNode<T>>("maximum", a, b, here);
  a.tape().save(a);
  a.tape().save(b);
  const T* a_values = a.value().as<T>();
  const T* b_values = b.value().as<T>();
  T* y = node.value.template as<T>();
  for_each_pair(kernels::merge_axes(a.shape(), b.shape()),
                [=](int64_t i, int64_t ia, int64_t ib) { y[i] = larger(a_values[ia], b_values[ib]); });
  return a.tape().var(node);
}

template <class T>
void MaximumNode<T>::backward(Tape& tape) {
  const Broadcast pair = kernels::merge_axes(tape.shape(a), tape.shape(b));
  const T* dy = grad.as<T>();
  const T* a_values = tape.value(a).as<T>();
  const T* b_values = tape.value(b).as<T>();
  add_contribution<T>(tape, a, pair, value.shape,
                      [=](int64_t i, int64_t ia, int64_t ib) { return dy[i] * share_of(a_values[ia], b_values[ib]); });
  add_contribution<T>(tape, b, pair, value.shape,
                      [=](int64_t i, int64_t ia, int64_t ib) { return dy[i] * share_of(b_values[ib], a_values[ia]); });
}

template <class T>
double MaximumNode<T>::distance_to_kink(Tape& tape) const {
  const Broadcast pair = kernels::merge_axes(tape.shape(a), tape.shape(b));
  const T* a_values = tape.value(a).as<T>();
  const T* b_values = tape.value(b).as<T>();
  const Tape::Scratch differences = tape.scratch(value.shape, dtype_of<T>());
  T* difference = differences.tensor().as<T>();
  for_each_pair(pair, [=](int64_t i, int64_t ia, int64_t ib) { difference[i] = a_values[ia] - b_values[ib]; });
  return nearest_of(value.numel(), [=](int64_t i) { return difference[i]; });
}

}  // namespace

Var add(Var a, Var b, Here here) {
  return a.dtype() == DType::float64 ? add_of<double>(a, b, here) : add_of<float>(a, b, here);
}

Var sub(Var a, Var b, Here here) {
  return a.dtype() == DType::float64 ? sub_of<double>(a, b, here) : sub_of<float>(a, b, here);
}

Var mul(Var a, Var b, Here here) {
  return a.dtype() == DType::float64 ? mul_of<double>(a, b, here) : mul_of<float>(a, b, here);
}

Var div(Var a, Var b, Here here) {
  return a.dtype() == DType::float64 ? div_of<double>(a, b, here) : div_of<float>(a, b, here);
}

Var maximum(Var a, Var b, Here here) {
  return a.dtype() == DType::float64 ? maximum_of<double>(a, b, here) : maximum_of<float>(a, b, here);
}

}  // namespace minillm
