// y = act(gate) * up, gate and up being the halves of each row.

#include "autograd/op_support.h"
#include "core/kernels/activation.h"

namespace minillm {

namespace {

template <class T>
struct GatedActivationNode final : Node {
  NodeId gate_up;
  Activation kind;

  void forward(Tape& tape) override;
  void backward(Tape& tape) override;
  double distance_to_kink(Tape& tape) const override;
};

template <class T>
Var gated_activation_fused(Var gate_up, Activation kind, Here here) {
  Tape& tape = gate_up.tape();
  Shape shape = gate_up.shape();
  shape.set(-1, shape[-1] / 2);
  auto& node = tape.make<GatedActivationNode<T>>(kernels::gated_name_of(kind), {gate_up}, shape, gate_up.dtype(), here);
  node.gate_up = tape.save(gate_up);
  node.kind = kind;
  node.recomputable = true;
  node.forward(tape);
  return tape.var(node);
}

template <class T>
void GatedActivationNode<T>::forward(Tape& tape) {
  const int64_t R = rows_of(value.shape);
  const int64_t f = value.shape[-1];
  const T* gate_up_values = tape.value(gate_up).as<T>();
  T* y = value.as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::gated_activation_forward(gate_up_values, y, R, f, kind);
      return;
    }
  }
  kernels::gated_activation_forward_reference(gate_up_values, y, R, f, kind);
}

template <class T>
void GatedActivationNode<T>::backward(Tape& tape) {
  const int64_t R = rows_of(value.shape);
  const int64_t f = value.shape[-1];
  const T* dy = grad.as<T>();
  const T* gate_up_values = tape.value(gate_up).as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      const GradientTarget target = tape.gradient_target(gate_up);
      float* d_gate_up = target.tensor.as<float>();
      kernels::gated_activation_backward(dy, gate_up_values, d_gate_up, R, f, kind, target.fresh);
      return;
    }
  }
  T* d_gate_up = tape.gradient(gate_up).as<T>();
  kernels::gated_activation_backward_reference(dy, gate_up_values, d_gate_up, R, f, kind);
}

template <class T>
double GatedActivationNode<T>::distance_to_kink(Tape& tape) const {
  if (kind != Activation::relu) {
    return Node::distance_to_kink(tape);
  }
  const int64_t f = value.shape[-1];
  const T* gate_up_values = tape.value(gate_up).as<T>();
  return nearest_of(value.numel(), [=](int64_t i) { return gate_up_values[i / f * 2 * f + i % f]; });
}

Var gated_activation_composed(Var gate_up, Activation kind) {
  const int64_t f = gate_up.shape()[-1] / 2;
  Var gate = slice(gate_up, -1, 0, f);
  Var up = slice(gate_up, -1, f, 2 * f);
  return mul(activate(gate, kind), up);
}

}  // namespace

Var gated_activation(Var gate_up, Activation kind, Here here) {
  Tape& tape = gate_up.tape();
  check_op(gate_up.shape().rank() >= 1 && gate_up.shape()[-1] % 2 == 0, "gated_activation", tape, here,
           "the last axis must hold gate and up, so its extent is even; found {}", gate_up.shape());
  if (tape.composed()) {
    return gated_activation_composed(gate_up, kind);
  }
  return gate_up.dtype() == DType::float64 ? gated_activation_fused<double>(gate_up, kind, here)
                                           : gated_activation_fused<float>(gate_up, kind, here);
}

}  // namespace minillm
