#pragma once
// Packed queries, keys and values: the check every op on them makes, and the pieces its composition works on.

#include "autograd/op_support.h"

namespace minillm {

/// Throws unless qkv is [B, T, layout.width()] in float32 or float64 and the layout makes sense.
void check_qkv(Var qkv, const QkvLayout& layout, const char* op, Here here);

/// qkv [B, T, width] taken apart by head, made of slices and reshapes.
struct QkvParts {
  Var q;     ///< [B, T, H, head_dim]
  Var gate;  ///< [B, T, H, head_dim]; empty without a gate
  Var k;     ///< [B, T, n_kv_heads, head_dim]
  Var v;     ///< [B, T, n_kv_heads, head_dim]
};

QkvParts split_qkv(Var qkv, const QkvLayout& layout);

/// The inverse of split_qkv.
Var join_qkv(const QkvParts& parts, const QkvLayout& layout);

}  // namespace minillm
