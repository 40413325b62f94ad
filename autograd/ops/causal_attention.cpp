// out = softmax(q k^T / sqrt(head_dim) + mask) v, head by head. The mask hides what comes later, or is not there.

#include "autograd/ops/qkv_parts.h"
#include "core/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace minillm {

namespace {

template <class T>
struct AttentionNode final : Node {
  NodeId qkv;
  QkvLayout layout;
  bool causal = true;
  Tensor stats;  // [B, n_heads, 2, T], saved by forward; with `value` all that backward needs

  void backward(Tape& tape) override;
};

template <class T>
Var attention_fused(Var qkv, const QkvLayout& layout, bool causal, Here here) {
  Tape& tape = qkv.tape();
  const int64_t B = qkv.shape()[0];
  const int64_t positions = qkv.shape()[1];
  const Shape shape = {B, positions, layout.n_heads * layout.head_dim};
  const char* op = causal ? "causal_attention" : "bidirectional_attention";
  auto& node = tape.make<AttentionNode<T>>(op, {qkv}, shape, qkv.dtype(), here);
  node.qkv = tape.save(qkv);
  tape.save(node);
  node.layout = layout;
  node.causal = causal;
  node.stats = tape.allocate({B, layout.n_heads, 2, positions}, qkv.dtype());
  const T* qkv_values = qkv.value().as<T>();
  T* out = node.value.template as<T>();
  T* stats = node.stats.template as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::attention_forward(qkv_values, out, stats, B, positions, layout, causal);
      return tape.var(node);
    }
  }
  kernels::attention_forward_reference(qkv_values, out, stats, B, positions, layout, causal);
  return tape.var(node);
}

template <class T>
void AttentionNode<T>::backward(Tape& tape) {
  const int64_t B = value.shape[0];
  const int64_t positions = value.shape[1];
  const T* dout = grad.as<T>();
  const T* qkv_values = tape.value(qkv).as<T>();
  const T* out = tape.value(id).template as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      GradientTarget dqkv = tape.gradient_target(qkv);
      if (dqkv.fresh && layout.gated) {  // the kernel leaves gate slices alone
        fill_zero(dqkv.tensor);
        dqkv.fresh = false;
      }
      kernels::attention_backward(dout, qkv_values, out, stats.as<T>(), dqkv.tensor.as<T>(), B, positions, layout,
                                  causal, dqkv.fresh);
      return;
    }
  }
  T* dqkv = tape.gradient(qkv).as<T>();
  kernels::attention_backward_reference(dout, qkv_values, out, stats.as<T>(), dqkv, B, positions, layout, causal);
}

/// [T, T]: 0 where position u may be seen from t, -1e30 where u > t. Finite, so that every intermediate of the
/// composition is a number; beside it any score vanishes in rounding, and exp makes it exactly 0.
Var causal_mask(Tape& tape, int64_t positions, DType dtype) {
  return tape.computed({positions, positions}, dtype,
                       [=](int64_t i) { return i % positions <= i / positions ? 0.0 : -1e30; });
}

// The G query heads of one key head are stacked, [G * T, head_dim], so that one product serves them all.
Var attention_composed(Var qkv, const QkvLayout& layout, bool causal) {
  Tape& tape = qkv.tape();
  const int64_t B = qkv.shape()[0];
  const int64_t T = qkv.shape()[1];
  const int64_t G = layout.heads_per_kv();
  const int64_t H_kv = layout.n_kv_heads;
  const int64_t head_dim = layout.head_dim;
  const QkvParts parts = split_qkv(qkv, layout);
  Var q = reshape(transpose(parts.q, {0, 2, 1, 3}), {B, H_kv, G * T, head_dim});
  Var k = transpose(parts.k, {0, 2, 1, 3});
  Var v = transpose(parts.v, {0, 2, 1, 3});
  Var scores = scale(matmul(q, k, true), 1 / std::sqrt(static_cast<double>(head_dim)));
  Var by_head = reshape(scores, {B, layout.n_heads, T, T});
  Var masked = causal ? add(by_head, causal_mask(tape, T, qkv.dtype())) : by_head;
  Var probabilities = reshape(softmax(masked), {B, H_kv, G * T, T});
  Var out = reshape(matmul(probabilities, v), {B, layout.n_heads, T, head_dim});
  return reshape(transpose(out, {0, 2, 1, 3}), {B, T, layout.n_heads * head_dim});
}

Var attention(Var qkv, const QkvLayout& layout, bool causal, Here here) {
  if (qkv.tape().composed()) {
    return attention_composed(qkv, layout, causal);
  }
  return qkv.dtype() == DType::float64 ? attention_fused<double>(qkv, layout, causal, here)
                                       : attention_fused<float>(qkv, layout, causal, here);
}

/// [H] from stats [B, H, 2, T], whose first rows are each query's largest score.
std::vector<double> largest_of_stats(const Tensor& stats) {
  const int64_t B = stats.shape[0];
  const int64_t H = stats.shape[1];
  const int64_t positions = stats.shape[3];
  std::vector<double> largest(static_cast<size_t>(H), -std::numeric_limits<double>::infinity());
  for (int64_t row = 0; row < B * H; ++row) {
    double& of_head = largest[static_cast<size_t>(row % H)];
    for (int64_t t = 0; t < positions; ++t) {
      of_head = std::max(of_head, stats.at(row * 2 * positions + t));
    }
  }
  return largest;
}

/// The same from queries and keys, one score after the other.
template <class T>
std::vector<double> largest_by_definition(const Tensor& qkv, const QkvLayout& layout, bool causal) {
  const int64_t positions = qkv.shape[1];
  const double scale = 1 / std::sqrt(static_cast<double>(layout.head_dim));
  std::vector<double> largest(static_cast<size_t>(layout.n_heads), -std::numeric_limits<double>::infinity());
  for (int64_t row = 0; row < qkv.shape[0] * positions; ++row) {
    const int64_t t = row % positions;
    const T* of_query = qkv.as<T>() + row * layout.width();
    for (int64_t u = 0; u < (causal ? t + 1 : positions); ++u) {
      const T* of_key = of_query + (u - t) * layout.width();
      for (int64_t h = 0; h < layout.n_heads; ++h) {
        const T* q = of_query + layout.slice_offset(h);
        const T* k = of_key + layout.slice_offset(layout.n_heads + h / layout.heads_per_kv());
        const T score = std::inner_product(q, q + layout.head_dim, k, T{0});
        double& of_head = largest[static_cast<size_t>(h)];
        of_head = std::max(of_head, scale * static_cast<double>(score));
      }
    }
  }
  return largest;
}

/// The statistics that a fused attention saved; empty for any other node.
template <class T>
Tensor stats_of(const Node& node) {
  const auto* attention = dynamic_cast<const AttentionNode<T>*>(&node);
  return attention == nullptr ? Tensor{} : attention->stats;
}

}  // namespace

Var causal_attention(Var qkv, QkvLayout layout, Here here) {
  check_qkv(qkv, layout, "causal_attention", here);
  return attention(qkv, layout, true, here);
}

Var bidirectional_attention(Var qkv, QkvLayout layout, Here here) {
  check_qkv(qkv, layout, "bidirectional_attention", here);
  return attention(qkv, layout, false, here);
}

std::vector<double> largest_scores(Var qkv, Var attended, const QkvLayout& layout, bool causal) {
  const bool is_double = qkv.dtype() == DType::float64;
  const Tensor stats = is_double ? stats_of<double>(attended.node()) : stats_of<float>(attended.node());
  if (stats) {
    return largest_of_stats(stats);
  }
  return is_double ? largest_by_definition<double>(qkv.value(), layout, causal)
                   : largest_by_definition<float>(qkv.value(), layout, causal);
}

}  // namespace minillm
