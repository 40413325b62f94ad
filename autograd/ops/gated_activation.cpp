// y = a(gate) * b(up), gate and up being the halves of each row: act(gate) * up, or a unit whose factors are bounded.

#include "autograd/op_support.h"
#include "core/kernels/activation.h"
#include "core/kernels/bounded_glu.h"

namespace minillm {

namespace {

// What differs between the two kinds of unit: the name of the op, where its slope jumps, and its composition.

const char* name_of(Activation kind) {
  return kernels::gated_name_of(kind);
}

const char* name_of(const BoundedGlu&) {
  return "bounded_glu";
}

/// How far a value of gate or up is from where the slope jumps, with a sign.
template <class T>
double kink_distance(Activation kind, T value, bool is_gate) {
  const bool jumps = kind == Activation::relu && is_gate;
  return jumps ? static_cast<double>(value) : std::numeric_limits<double>::infinity();
}

template <class T>
double kink_distance(const BoundedGlu& unit, T value, bool is_gate) {
  if (unit.kind == BoundedGlu::Kind::situ) {
    return std::numeric_limits<double>::infinity();
  }
  return static_cast<double>(is_gate ? value : std::abs(value)) - unit.limit;
}

Var composed(Var gate, Var up, Activation kind) {
  return mul(activate(gate, kind), up);
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

Var composed(Var gate, Var up, const BoundedGlu& unit) {
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

template <class T, class Unit>
struct GatedActivationNode final : Node {
  NodeId gate_up;
  Unit unit;

  void forward(Tape& tape) override;
  void backward(Tape& tape) override;
  double distance_to_kink(Tape& tape) const override;
};

template <class T, class Unit>
Var gated_activation_fused(Var gate_up, const Unit& unit, Here here) {
  Tape& tape = gate_up.tape();
  Shape shape = gate_up.shape();
  shape.set(-1, shape[-1] / 2);
  auto& node = tape.make<GatedActivationNode<T, Unit>>(name_of(unit), {gate_up}, shape, gate_up.dtype(), here);
  node.gate_up = tape.save(gate_up);
  node.unit = unit;
  node.recomputable = true;
  node.forward(tape);
  return tape.var(node);
}

template <class T, class Unit>
void GatedActivationNode<T, Unit>::forward(Tape& tape) {
  const int64_t R = rows_of(value.shape);
  const int64_t f = value.shape[-1];
  const T* gate_up_values = tape.value(gate_up).template as<T>();
  T* y = value.as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::gated_activation_forward(gate_up_values, y, R, f, unit);
      return;
    }
  }
  kernels::gated_activation_forward_reference(gate_up_values, y, R, f, unit);
}

template <class T, class Unit>
void GatedActivationNode<T, Unit>::backward(Tape& tape) {
  const int64_t R = rows_of(value.shape);
  const int64_t f = value.shape[-1];
  const T* dy = grad.as<T>();
  const T* gate_up_values = tape.value(gate_up).template as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      const GradientTarget target = tape.gradient_target(gate_up);
      float* d_gate_up = target.tensor.as<float>();
      kernels::gated_activation_backward(dy, gate_up_values, d_gate_up, R, f, unit, target.fresh);
      return;
    }
  }
  T* d_gate_up = tape.gradient(gate_up).template as<T>();
  kernels::gated_activation_backward_reference(dy, gate_up_values, d_gate_up, R, f, unit);
}

template <class T, class Unit>
double GatedActivationNode<T, Unit>::distance_to_kink(Tape& tape) const {
  const int64_t f = value.shape[-1];
  const T* values = tape.value(gate_up).template as<T>();
  return nearest_of(2 * value.numel(),
                    [=, this](int64_t i) { return kink_distance(unit, values[i], i % (2 * f) < f); });
}

template <class Unit>
Var gated_activation_by(Var gate_up, const Unit& unit, Here here) {
  Tape& tape = gate_up.tape();
  check_op(gate_up.shape().rank() >= 1 && gate_up.shape()[-1] % 2 == 0, "gated_activation", tape, here,
           "the last axis must hold gate and up, so its extent is even; found {}", gate_up.shape());
  if (tape.composed()) {
    const int64_t f = gate_up.shape()[-1] / 2;
    Var gate = slice(gate_up, -1, 0, f);
    return composed(gate, slice(gate_up, -1, f, 2 * f), unit);
  }
  return gate_up.dtype() == DType::float64 ? gated_activation_fused<double>(gate_up, unit, here)
                                           : gated_activation_fused<float>(gate_up, unit, here);
}

}  // namespace

Var gated_activation(Var gate_up, Activation kind, Here here) {
  return gated_activation_by(gate_up, kind, here);
}

Var gated_activation(Var gate_up, const BoundedGlu& unit, Here here) {
  return gated_activation_by(gate_up, unit, here);
}

}  // namespace minillm
