#include "autograd/ops/qkv_parts.h"

namespace minillm {

void check_qkv(Var qkv, const QkvLayout& layout, const char* op, Here here) {
  const Tape& tape = qkv.tape();
  check_op(
      layout.n_heads >= 1 && layout.n_kv_heads >= 1 && layout.head_dim >= 1 && layout.n_heads % layout.n_kv_heads == 0,
      op, tape, here, "the query heads must be a multiple of the key heads; found {} and {}, head_dim {}",
      layout.n_heads, layout.n_kv_heads, layout.head_dim);
  check_op(qkv.shape().rank() == 3 && qkv.shape()[-1] == layout.width(), op, tape, here,
           "qkv must be [B, T, {}] for {} query heads, {} key heads, head_dim {}{}; found {}", layout.width(),
           layout.n_heads, layout.n_kv_heads, layout.head_dim, layout.gated ? " and a gate" : "", qkv.shape());
  check_op(qkv.dtype() != DType::int32, op, tape, here, "qkv must be float32 or float64; found {}", qkv.dtype());
}

QkvParts split_qkv(Var qkv, const QkvLayout& layout) {
  const int64_t B = qkv.shape()[0];
  const int64_t T = qkv.shape()[1];
  const int64_t head_dim = layout.head_dim;
  QkvParts parts;
  const Shape kv_shape = {B, T, layout.n_kv_heads, head_dim};
  parts.k = reshape(slice(qkv, -1, layout.k_offset(), layout.v_offset()), kv_shape);
  parts.v = reshape(slice(qkv, -1, layout.v_offset(), layout.width()), kv_shape);
  parts.q = reshape(slice(qkv, -1, 0, layout.k_offset()), {B, T, layout.n_heads, layout.q_stride()});
  if (layout.gated) {
    parts.gate = slice(parts.q, -1, head_dim, 2 * head_dim);
    parts.q = slice(parts.q, -1, 0, head_dim);
  }
  return parts;
}

Var join_qkv(const QkvParts& parts, const QkvLayout& layout) {
  const int64_t B = parts.q.shape()[0];
  const int64_t T = parts.q.shape()[1];
  Var q = parts.q;
  if (layout.gated) {
    const Var halves[] = {parts.q, parts.gate};
    q = concat(halves, -1);
  }
  const int64_t kv_width = layout.n_kv_heads * layout.head_dim;
  const Var rows[] = {reshape(q, {B, T, layout.k_offset()}), reshape(parts.k, {B, T, kv_width}),
                      reshape(parts.v, {B, T, kv_width})};
  return concat(rows, -1);
}

}  // namespace minillm
