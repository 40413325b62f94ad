// RMSNorm of every query and key slice; gates and values pass through.

#include "core/kernels/qk_norm.h"
#include "autograd/ops/qkv_parts.h"

namespace minillm {

namespace {

template <class T>
struct QkNormNode final : Node {
  NodeId qkv;
  NodeId q_gain;
  NodeId k_gain;
  QkvLayout layout;
  double gain_offset;
  Tensor rstd;  // [B * T, n_heads + n_kv_heads], saved by forward

  void backward(Tape& tape) override;
};

template <class T>
Var qk_norm_fused(Var qkv, Var q_gain, Var k_gain, const QkvLayout& layout, double eps, double gain_offset, Here here) {
  Tape& tape = qkv.tape();
  const int64_t R = rows_of(qkv.shape());
  auto& node = tape.make<QkNormNode<T>>("qk_norm", {qkv, q_gain, k_gain}, qkv.shape(), qkv.dtype(), here);
  node.qkv = tape.save(qkv);
  node.q_gain = tape.save(q_gain);
  node.k_gain = tape.save(k_gain);
  node.layout = layout;
  node.gain_offset = gain_offset;
  node.rstd = tape.allocate({R, layout.qk_slices()}, qkv.dtype());
  const T* x = qkv.value().as<T>();
  const T* w_q = q_gain.value().as<T>();
  const T* w_k = k_gain.value().as<T>();
  T* y = node.value.template as<T>();
  T* rstd = node.rstd.template as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::qk_norm_forward(x, w_q, w_k, y, rstd, R, layout, eps, gain_offset);
      return tape.var(node);
    }
  }
  kernels::qk_norm_forward_reference(x, w_q, w_k, y, rstd, R, layout, eps, gain_offset);
  return tape.var(node);
}

template <class T>
void QkNormNode<T>::backward(Tape& tape) {
  const int64_t R = rows_of(value.shape);
  const T* dy = grad.as<T>();
  const T* x = tape.value(qkv).as<T>();
  const T* w_q = tape.value(q_gain).as<T>();
  const T* w_k = tape.value(k_gain).as<T>();
  T* dx = data_or_null<T>(tape.gradient(qkv));
  T* dw_q = data_or_null<T>(tape.gradient(q_gain));
  T* dw_k = data_or_null<T>(tape.gradient(k_gain));
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      const Tape::Scratch scratch = tape.scratch({kernels::qk_norm_partials(R), 2, layout.head_dim}, DType::float32);
      float* partial = scratch.tensor().as<float>();
      kernels::qk_norm_backward(dy, x, w_q, w_k, rstd.as<T>(), dx, dw_q, dw_k, partial, R, layout, gain_offset);
      return;
    }
  }
  kernels::qk_norm_backward_reference(dy, x, w_q, w_k, rstd.as<T>(), dx, dw_q, dw_k, R, layout, gain_offset);
}

}  // namespace

Var qk_norm(Var qkv, Var q_gain, Var k_gain, QkvLayout layout, double eps, double gain_offset, Here here) {
  Tape& tape = qkv.tape();
  check_qkv(qkv, layout, "qk_norm", here);
  const Shape gain_shape = {layout.head_dim};
  check_op(q_gain.shape() == gain_shape && k_gain.shape() == gain_shape, "qk_norm", tape, here,
           "both gains must be {}; found {} for queries, {} for keys", gain_shape, q_gain.shape(), k_gain.shape());
  check_op(q_gain.dtype() == qkv.dtype() && k_gain.dtype() == qkv.dtype(), "qk_norm", tape, here,
           "both gains must be {} as qkv is; found {} and {}", qkv.dtype(), q_gain.dtype(), k_gain.dtype());
  if (tape.composed()) {
    QkvParts parts = split_qkv(qkv, layout);
    parts.q = rmsnorm(parts.q, q_gain, eps, gain_offset);
    parts.k = rmsnorm(parts.k, k_gain, eps, gain_offset);
    return join_qkv(parts, layout);
  }
  return qkv.dtype() == DType::float64 ? qk_norm_fused<double>(qkv, q_gain, k_gain, layout, eps, gain_offset, here)
                                       : qk_norm_fused<float>(qkv, q_gain, k_gain, layout, eps, gain_offset, here);
}

}  // namespace minillm
