// y = a(gate) * b(up), gate and up being the halves of each row, both factors bounded.

#include "core/kernels/bounded_glu.h"
#include "autograd/op_support.h"

namespace minillm {

namespace {

template <class T>
struct BoundedGluNode final : Node {
  NodeId gate_up;
  BoundedGlu unit;

  void forward(Tape& tape) override;
  void backward(Tape& tape) override;
  double distance_to_kink(Tape& tape) const override;
};

template <class T>
Var bounded_glu_fused(Var gate_up, const BoundedGlu& unit, Here here) {
  Tape& tape = gate_up.tape();
  Shape shape = gate_up.shape();
  shape.set(-1, shape[-1] / 2);
  auto& node = tape.make<BoundedGluNode<T>>("bounded_glu", {gate_up}, shape, gate_up.dtype(), here);
  node.gate_up = tape.save(gate_up);
  node.unit = unit;
  node.recomputable = true;
  node.forward(tape);
  return tape.var(node);
}

template <class T>
void BoundedGluNode<T>::forward(Tape& tape) {
  const int64_t R = rows_of(value.shape);
  const int64_t f = value.shape[-1];
  const T* gate_up_values = tape.value(gate_up).as<T>();
  T* y = value.as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::bounded_glu_forward(gate_up_values, y, R, f, unit);
      return;
    }
  }
  kernels::bounded_glu_forward_reference(gate_up_values, y, R, f, unit);
}

template <class T>
void BoundedGluNode<T>::backward(Tape& tape) {
  const int64_t R = rows_of(value.shape);
  const int64_t f = value.shape[-1];
  const T* dy = grad.as<T>();
  const T* gate_up_values = tape.value(gate_up).as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      const GradientTarget target = tape.gradient_target(gate_up);
      float* d_gate_up = target.tensor.as<float>();
      kernels::bounded_glu_backward(dy, gate_up_values, d_gate_up, R, f, unit, target.fresh);
      return;
    }
  }
  kernels::bounded_glu_backward_reference(dy, gate_up_values, tape.gradient(gate_up).as<T>(), R, f, unit);
}

template <class T>
double BoundedGluNode<T>::distance_to_kink(Tape& tape) const {
  if (unit.kind == BoundedGlu::Kind::situ) {
    return Node::distance_to_kink(tape);
  }
  const int64_t f = value.shape[-1];
  const T* values = tape.value(gate_up).as<T>();
  const T limit = static_cast<T>(unit.limit);
  return nearest_of(2 * value.numel(), [=](int64_t i) {
    const bool is_gate = i % (2 * f) < f;
    return (is_gate ? values[i] : std::abs(values[i])) - limit;
  });
}

/// min(x, limit)
Var at_most(Var x, double limit) {
  return scale(maximum(scale(x, -1), x.tape().scalar(-limit, x.dtype())), -1);
}

Var clamp(Var x, double limit) {
  return maximum(at_most(x, limit), x.tape().scalar(-limit, x.dtype()));
}

/// bound tanh(x / bound)
Var soft_bound(Var x, double bound) {
  return scale(tanh(scale(x, 1 / bound)), bound);
}

Var bounded_glu_composed(Var gate_up, const BoundedGlu& unit) {
  const int64_t f = gate_up.shape()[-1] / 2;
  Var gate = slice(gate_up, -1, 0, f);
  Var up = slice(gate_up, -1, f, 2 * f);
  switch (unit.kind) {
    case BoundedGlu::Kind::clamp: {
      Var m = at_most(gate, unit.limit);
      return mul(mul(m, sigmoid(m)), clamp(up, unit.limit));
    }
    case BoundedGlu::Kind::oai: {
      Var m = at_most(gate, unit.limit);
      return mul(mul(m, sigmoid(scale(m, unit.alpha))), add_scalar(clamp(up, unit.limit), 1));
    }
    case BoundedGlu::Kind::situ: break;
  }
  return mul(mul(soft_bound(gate, unit.gate_bound), sigmoid(gate)), soft_bound(up, unit.up_bound));
}

}  // namespace

Var bounded_glu(Var gate_up, const BoundedGlu& unit, Here here) {
  Tape& tape = gate_up.tape();
  check_op(gate_up.shape().rank() >= 1 && gate_up.shape()[-1] % 2 == 0, "bounded_glu", tape, here,
           "the last axis must hold gate and up, so its extent is even; found {}", gate_up.shape());
  if (tape.composed()) {
    return bounded_glu_composed(gate_up, unit);
  }
  return gate_up.dtype() == DType::float64 ? bounded_glu_fused<double>(gate_up, unit, here)
                                           : bounded_glu_fused<float>(gate_up, unit, here);
}

}  // namespace minillm
