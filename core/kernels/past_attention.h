#pragma once
// Attention of a few new positions to themselves and to all before them, whose keys and values were kept: what a
// decoder does for each token. No gradient.
//
//   s[t,h,u] = scale * sum_j q[t,h,j] keys[g,u,j]        g = h / (H / G), u <= past + t
//   out[t,h,j] = sum_u softmax_u(s[t,h,u]) values[g,u,j]
//
// `count` new positions behind `past` ones, H query heads, G key heads; q [count, H, key_width],
// out [count, H, value_width]. Keys and values of a head lie together: position u of head g begins at
// (g * capacity + u) * row floats, with the new positions' already there.

#include <cstdint>

namespace minillm::kernels {

struct PastShape {
  int64_t count = 1;
  int64_t past = 0;
  int64_t capacity = 0;  ///< positions there is room for
  int64_t heads = 0;
  int64_t key_heads = 0;
  int64_t key_width = 0;
  int64_t key_row = 0;  ///< from a position's key to the next one's
  int64_t value_width = 0;
  int64_t value_row = 0;
  double scale = 1;
};

template <class Real>
void past_attention_reference(const Real* q, const Real* keys, const Real* values, Real* out, const PastShape& shape);

/// Parallel over (t, key head) where there is work for several threads.
void past_attention(const float* q, const float* keys, const float* values, float* out, const PastShape& shape);

}  // namespace minillm::kernels
