#pragma once
// Self-attention over packed queries, keys and values (Vaswani et al. 2017, "Attention Is All You Need", eq. 1), block
// by block with a running maximum and sum (Dao 2023, "FlashAttention-2", algorithms 1 and 2).
//
//   s[b,h,t,u] = scale * sum_j q[b,t,h,j] k[b,u,h/G,j]                   scale = head_dim^(-1/2)
//   largest[b,h,t] = max_u s[b,h,t,u]                                    u <= t where causal, else all u
//   log_sum[b,h,t] = log sum_u exp(s[b,h,t,u] - largest[b,h,t])
//   p[b,h,t,u] = exp(s[b,h,t,u] - largest[b,h,t] - log_sum[b,h,t])       never stored
//   out[b,t,h,j] = sum_u p[b,h,t,u] v[b,u,h/G,j]
//
// B sequences, T positions, H = n_heads query heads; G = heads_per_kv() of them share one key and value head.
// qkv, dqkv [B, T, layout.width()] as QkvLayout packs them; out, dout [B, T, H * head_dim]; stats [B, H, 2, T]
// holds largest and log_sum, saved by forward: backward computes p from them again. (Their sum alone would not do:
// where scores are large it has no digits left for log_sum.) Backward adds to dqkv, or overwrites it where `fresh`;
// gate slices are neither read nor written.

#include <cstdint>

namespace minillm {

/// How one token's row of qkv is packed: n_heads query slices, then n_kv_heads key slices, then n_kv_heads value
/// slices, each head_dim wide. With a gate each query slice is followed by its gate slice of the same width (the layout
/// of Qwen3-Next's q_proj).
struct QkvLayout {
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  bool gated = false;

  int64_t q_stride() const { return gated ? 2 * head_dim : head_dim; }     ///< from one head's query to the next
  int64_t k_offset() const { return n_heads * q_stride(); }                ///< of the first key slice
  int64_t v_offset() const { return k_offset() + n_kv_heads * head_dim; }  ///< of the first value slice
  int64_t width() const { return v_offset() + n_kv_heads * head_dim; }     ///< of a token's row
  int64_t heads_per_kv() const { return n_heads / n_kv_heads; }

  /// Slice i of a row, query slices first, then key slices: what rope and qk_norm walk.
  int64_t qk_slices() const { return n_heads + n_kv_heads; }
  int64_t slice_offset(int64_t i) const { return i < n_heads ? i * q_stride() : k_offset() + (i - n_heads) * head_dim; }
  int64_t slice_width(int64_t i) const { return i < n_heads ? q_stride() : head_dim; }  ///< the gate included
};

namespace kernels {

template <class Real>
void attention_forward_reference(const Real* qkv, Real* out, Real* stats, int64_t B, int64_t T, const QkvLayout& layout,
                                 bool causal);

template <class Real>
void attention_backward_reference(const Real* dout, const Real* qkv, const Real* out, const Real* stats, Real* dqkv,
                                  int64_t B, int64_t T, const QkvLayout& layout, bool causal);

/// Parallel over (b, key head), and over blocks of queries where there are few of them.
void attention_forward(const float* qkv, float* out, float* stats, int64_t B, int64_t T, const QkvLayout& layout,
                       bool causal);

/// Parallel over (b, key head): a task owns the gradients of its keys and values and of the queries that read them, and
/// adds in an order that only the shape decides.
void attention_backward(const float* dout, const float* qkv, const float* out, const float* stats, float* dqkv,
                        int64_t B, int64_t T, const QkvLayout& layout, bool causal, bool fresh);

}  // namespace kernels

}  // namespace minillm
