// y = attended * sigmoid(gate), the gate slices lying in qkv behind each head's query.

#include "core/kernels/attention_gate.h"
#include "autograd/ops/qkv_parts.h"

namespace minillm {

namespace {

template <class T>
struct AttentionGateNode final : Node {
  NodeId attended;
  NodeId qkv;
  QkvLayout layout;

  void backward(Tape& tape) override;
};

template <class T>
Var attention_gate_fused(Var attended, Var qkv, const QkvLayout& layout, Here here) {
  Tape& tape = qkv.tape();
  const int64_t R = rows_of(qkv.shape());
  auto& node =
      tape.make<AttentionGateNode<T>>("attention_gate", {attended, qkv}, attended.shape(), attended.dtype(), here);
  node.attended = tape.save(attended);
  node.qkv = tape.save(qkv);
  node.layout = layout;
  const T* a = attended.value().as<T>();
  const T* qkv_values = qkv.value().as<T>();
  T* y = node.value.template as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::attention_gate_forward(a, qkv_values, y, R, layout);
      return tape.var(node);
    }
  }
  kernels::attention_gate_forward_reference(a, qkv_values, y, R, layout);
  return tape.var(node);
}

template <class T>
void AttentionGateNode<T>::backward(Tape& tape) {
  const int64_t R = rows_of(value.shape);
  const T* dy = grad.as<T>();
  const T* a = tape.value(attended).as<T>();
  const T* qkv_values = tape.value(qkv).as<T>();
  T* da = data_or_null<T>(tape.gradient(attended));
  T* dqkv = data_or_null<T>(tape.gradient(qkv));
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::attention_gate_backward(dy, a, qkv_values, da, dqkv, R, layout);
      return;
    }
  }
  kernels::attention_gate_backward_reference(dy, a, qkv_values, da, dqkv, R, layout);
}

}  // namespace

Var attention_gate(Var attended, Var qkv, QkvLayout layout, Here here) {
  Tape& tape = qkv.tape();
  check_qkv(qkv, layout, "attention_gate", here);
  check_op(layout.gated, "attention_gate", tape, here, "the layout has no gate slices");
  const Shape shape = {qkv.shape()[0], qkv.shape()[1], layout.n_heads * layout.head_dim};
  check_op(attended.shape() == shape && attended.dtype() == qkv.dtype(), "attention_gate", tape, here,
           "attended must be {} in {}; found {} in {}", shape, qkv.dtype(), attended.shape(), attended.dtype());
  if (tape.composed()) {
    const QkvParts parts = split_qkv(qkv, layout);
    return mul(attended, sigmoid(reshape(parts.gate, shape)));
  }
  return qkv.dtype() == DType::float64 ? attention_gate_fused<double>(attended, qkv, layout, here)
                                       : attention_gate_fused<float>(attended, qkv, layout, here);
}

}  // namespace minillm
