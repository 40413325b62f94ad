// Pairs (j, j + pairs) of every query and key slice are rotated by the angle of their position.

#include "core/kernels/rope.h"
#include "autograd/ops/qkv_parts.h"

namespace minillm {

namespace {

template <class T>
struct RopeNode final : Node {
  NodeId qkv;
  QkvLayout layout;
  Tensor cosines;  // [T, pairs], the caller's: valid until Tape::clear
  Tensor sines;

  void backward(Tape& tape) override;
};

template <class T>
Var rope_fused(Var qkv, const QkvLayout& layout, const Tensor& cosines, const Tensor& sines, Here here) {
  Tape& tape = qkv.tape();
  const Shape& shape = qkv.shape();
  auto& node = tape.make<RopeNode<T>>("rope", {qkv}, shape, qkv.dtype(), here);
  node.qkv = qkv.id();
  node.layout = layout;
  node.cosines = cosines;
  node.sines = sines;
  const int64_t pairs = cosines.shape[1];
  const T* x = qkv.value().as<T>();
  T* y = node.value.template as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::rope_forward(x, cosines.as<T>(), sines.as<T>(), y, shape[0], shape[1], pairs, layout);
      return tape.var(node);
    }
  }
  kernels::rope_forward_reference(x, cosines.as<T>(), sines.as<T>(), y, shape[0], shape[1], pairs, layout);
  return tape.var(node);
}

// A rotation's transpose is the rotation by -angle.
template <class T>
void RopeNode<T>::backward(Tape& tape) {
  const int64_t B = value.shape[0];
  const int64_t positions = value.shape[1];
  const int64_t pairs = cosines.shape[1];
  const T* dy = grad.as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      const GradientTarget dx = tape.gradient_target(qkv);
      kernels::rope_backward(dy, cosines.as<T>(), sines.as<T>(), dx.tensor.as<T>(), B, positions, pairs, layout,
                             dx.fresh);
      return;
    }
  }
  T* dx = tape.gradient(qkv).as<T>();
  kernels::rope_backward_reference(dy, cosines.as<T>(), sines.as<T>(), dx, B, positions, pairs, layout);
}

// x [B, T, heads, head_dim]; cosines, sines [T, 1, pairs]
Var rotate(Var x, Var cosines, Var sines) {
  const int64_t pairs = cosines.shape()[-1];
  const int64_t head_dim = x.shape()[-1];
  Var first = slice(x, -1, 0, pairs);
  Var second = slice(x, -1, pairs, 2 * pairs);
  Var rotated_first = sub(mul(first, cosines), mul(second, sines));
  Var rotated_second = add(mul(second, cosines), mul(first, sines));
  if (2 * pairs == head_dim) {
    const Var parts[] = {rotated_first, rotated_second};
    return concat(parts, -1);
  }
  const Var parts[] = {rotated_first, rotated_second, slice(x, -1, 2 * pairs, head_dim)};
  return concat(parts, -1);
}

Var rope_composed(Var qkv, const QkvLayout& layout, const Tensor& cosines, const Tensor& sines) {
  Tape& tape = qkv.tape();
  const Shape one_per_head = {cosines.shape[0], 1, cosines.shape[1]};
  Var cosine = tape.constant(cosines.reshape(one_per_head));
  Var sine = tape.constant(sines.reshape(one_per_head));
  QkvParts parts = split_qkv(qkv, layout);
  parts.q = rotate(parts.q, cosine, sine);
  parts.k = rotate(parts.k, cosine, sine);
  return join_qkv(parts, layout);
}

}  // namespace

Var rope(Var qkv, QkvLayout layout, const Tensor& cosines, const Tensor& sines, Here here) {
  Tape& tape = qkv.tape();
  check_qkv(qkv, layout, "rope", here);
  check_op(cosines.shape.rank() == 2 && cosines.shape == sines.shape && cosines.shape[0] == qkv.shape()[1] &&
               2 * cosines.shape[1] <= layout.head_dim,
           "rope", tape, here, "cosines and sines must be [T, pairs] with at most {} pairs; found {} and {} for qkv {}",
           layout.head_dim / 2, cosines.shape, sines.shape, qkv.shape());
  check_op(cosines.dtype == qkv.dtype() && sines.dtype == qkv.dtype(), "rope", tape, here,
           "cosines and sines must be {} as qkv is; found {} and {}", qkv.dtype(), cosines.dtype, sines.dtype);
  if (cosines.shape[1] == 0) {
    return qkv;  // a fraction so small that nothing is rotated
  }
  if (tape.composed()) {
    return rope_composed(qkv, layout, cosines, sines);
  }
  return qkv.dtype() == DType::float64 ? rope_fused<double>(qkv, layout, cosines, sines, here)
                                       : rope_fused<float>(qkv, layout, cosines, sines, here);
}

}  // namespace minillm
