#include "core/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace minillm::kernels {

namespace {

template <class Real>
Real dot(const Real* a, const Real* b, int64_t count) {
  Real sum = 0;
  for (int64_t j = 0; j < count; ++j) {
    sum += a[j] * b[j];
  }
  return sum;
}

template <class Real>
Real score_scale(const QkvLayout& layout) {
  return Real{1} / std::sqrt(static_cast<Real>(layout.head_dim));
}

/// The largest score of a query, and the log of the sum of exp(score - largest).
template <class Real>
struct Stats {
  Real largest;
  Real log_sum;
};

// One query, which sees `keys` keys. q, out_t: its slices; k, v: the slices of position 0, a row's width apart.
template <class Real>
Stats<Real> attend(const Real* q, const Real* k, const Real* v, Real* out_t, int64_t keys, const QkvLayout& layout) {
  const int64_t head_dim = layout.head_dim;
  const int64_t width = layout.width();
  const Real scale = score_scale<Real>(layout);
  // exp(s - largest) cannot overflow, and the largest term is 1: the sum cannot vanish.
  Real largest = -std::numeric_limits<Real>::infinity();
  for (int64_t u = 0; u < keys; ++u) {
    largest = std::max(largest, scale * dot(q, k + u * width, head_dim));
  }
  for (int64_t j = 0; j < head_dim; ++j) {
    out_t[j] = 0;
  }
  Real sum = 0;
  for (int64_t u = 0; u < keys; ++u) {
    const Real s = scale * dot(q, k + u * width, head_dim);
    const Real e = std::exp(s - largest);
    sum += e;
    for (int64_t j = 0; j < head_dim; ++j) {
      out_t[j] += e * v[u * width + j];
    }
  }
  for (int64_t j = 0; j < head_dim; ++j) {
    out_t[j] /= sum;
  }
  return {largest, std::log(sum)};
}

}  // namespace

template <class Real>
void attention_forward_reference(const Real* qkv, Real* out, Real* stats, int64_t B, int64_t T, const QkvLayout& layout,
                                 bool causal) {
  const int64_t width = layout.width();
  const int64_t head_dim = layout.head_dim;
  for (int64_t b = 0; b < B; ++b) {
    const Real* qkv_b = qkv + b * T * width;
    for (int64_t h = 0; h < layout.n_heads; ++h) {
      const int64_t kv_head = h / layout.heads_per_kv();
      const Real* k = qkv_b + layout.k_offset() + kv_head * head_dim;
      const Real* v = qkv_b + layout.v_offset() + kv_head * head_dim;
      for (int64_t t = 0; t < T; ++t) {
        const Real* q = qkv_b + t * width + h * layout.q_stride();
        Real* out_t = out + ((b * T + t) * layout.n_heads + h) * head_dim;
        const Stats<Real> saved = attend(q, k, v, out_t, causal ? t + 1 : T, layout);
        Real* stats_h = stats + (b * layout.n_heads + h) * 2 * T;
        stats_h[t] = saved.largest;
        stats_h[T + t] = saved.log_sum;
      }
    }
  }
}

namespace {

// forward: out = sum_u p_u v_u, p = softmax(s), s_u = scale * q . k_u, so
//   dv_u += p_u dout                 dp_u = dout . v_u
//   ds_u  = p_u (dp_u - D)           D = sum_w p_w dp_w = dout . out: the softmax' own backward without its sum over u
//   dq   += scale ds_u k_u           dk_u += scale ds_u q
template <class Real>
struct Query {
  const Real* q;
  const Real* out;
  const Real* dout;
  Stats<Real> stats;
  Real* dq;
};

template <class Real>
void attend_backward(const Query<Real>& query, const Real* k, const Real* v, Real* dk, Real* dv, int64_t keys,
                     const QkvLayout& layout) {
  const int64_t head_dim = layout.head_dim;
  const int64_t width = layout.width();
  const Real scale = score_scale<Real>(layout);
  const Real D = dot(query.dout, query.out, head_dim);
  for (int64_t u = 0; u < keys; ++u) {
    const Real* k_u = k + u * width;
    const Real s = scale * dot(query.q, k_u, head_dim);
    const Real p = std::exp(s - query.stats.largest - query.stats.log_sum);
    const Real dp = dot(query.dout, v + u * width, head_dim);
    const Real ds = p * (dp - D);
    for (int64_t j = 0; j < head_dim; ++j) {
      dv[u * width + j] += p * query.dout[j];
      dk[u * width + j] += scale * ds * query.q[j];
      query.dq[j] += scale * ds * k_u[j];
    }
  }
}

}  // namespace

template <class Real>
void attention_backward_reference(const Real* dout, const Real* qkv, const Real* out, const Real* stats, Real* dqkv,
                                  int64_t B, int64_t T, const QkvLayout& layout, bool causal) {
  const int64_t width = layout.width();
  const int64_t head_dim = layout.head_dim;
  for (int64_t b = 0; b < B; ++b) {
    const Real* qkv_b = qkv + b * T * width;
    Real* dqkv_b = dqkv + b * T * width;
    for (int64_t h = 0; h < layout.n_heads; ++h) {
      const int64_t k_start = layout.k_offset() + h / layout.heads_per_kv() * head_dim;
      const int64_t v_start = layout.v_offset() + h / layout.heads_per_kv() * head_dim;
      for (int64_t t = 0; t < T; ++t) {
        const int64_t q_start = t * width + h * layout.q_stride();
        const int64_t out_start = ((b * T + t) * layout.n_heads + h) * head_dim;
        const Real* stats_h = stats + (b * layout.n_heads + h) * 2 * T;
        const Query<Real> query = {
            qkv_b + q_start, out + out_start, dout + out_start, {stats_h[t], stats_h[T + t]}, dqkv_b + q_start};
        attend_backward(query, qkv_b + k_start, qkv_b + v_start, dqkv_b + k_start, dqkv_b + v_start, causal ? t + 1 : T,
                        layout);
      }
    }
  }
}

template void attention_forward_reference(const float*, float*, float*, int64_t, int64_t, const QkvLayout&, bool);
template void attention_forward_reference(const double*, double*, double*, int64_t, int64_t, const QkvLayout&, bool);
template void attention_backward_reference(const float*, const float*, const float*, const float*, float*, int64_t,
                                           int64_t, const QkvLayout&, bool);
template void attention_backward_reference(const double*, const double*, const double*, const double*, double*, int64_t,
                                           int64_t, const QkvLayout&, bool);

}  // namespace minillm::kernels
