#pragma once
// Causal self-attention over packed queries, keys and values. (Kernels follow; the layout is used by every op on qkv.)

#include "core/shape.h"

#include <cstdint>

namespace minillm {

/// How one token's row of qkv is packed: n_heads query slices, then n_kv_heads key slices, then n_kv_heads value slices,
/// each head_dim wide. With a gate each query slice is followed by its gate slice of the same width (the layout of
/// Qwen3-Next's q_proj).
struct QkvLayout {
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  bool gated = false;

  int64_t q_stride() const { return gated ? 2 * head_dim : head_dim; }          ///< from one head's query to the next
  int64_t k_offset() const { return n_heads * q_stride(); }                     ///< of the first key slice
  int64_t v_offset() const { return k_offset() + n_kv_heads * head_dim; }       ///< of the first value slice
  int64_t width() const { return v_offset() + n_kv_heads * head_dim; }          ///< of a token's row
  int64_t heads_per_kv() const { return n_heads / n_kv_heads; }

  /// Slice i of a row, query slices first, then key slices: what rope and qk_norm walk.
  int64_t qk_slices() const { return n_heads + n_kv_heads; }
  int64_t slice_offset(int64_t i) const { return i < n_heads ? i * q_stride() : k_offset() + (i - n_heads) * head_dim; }
  int64_t slice_width(int64_t i) const { return i < n_heads ? q_stride() : head_dim; }  ///< the gate included
};

}  // namespace minillm
