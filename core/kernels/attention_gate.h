#pragma once
// The elementwise output gate of attention (Qiu et al. 2025, "Gated Attention for Large Language Models", variant G1).
//
//   y[r,h,j] = a[r,h,j] * sigmoid(g[r,h,j])        g = the gate slice of head h in row r of qkv
//
// R rows (tokens), H heads of head_dim. a, y, da, dy [R, H, head_dim]; qkv, dqkv [R, layout.width()], layout.gated.
// Backward adds to da and to the gate slices of dqkv; either may be null. The sigmoid is computed again, not saved.

#include "core/kernels/attention.h"

#include <cstdint>

namespace minillm::kernels {

template <class T>
void attention_gate_forward_reference(const T* a, const T* qkv, T* y, int64_t R, const QkvLayout& layout);

template <class T>
void attention_gate_backward_reference(const T* dy, const T* a, const T* qkv, T* da, T* dqkv, int64_t R,
                                       const QkvLayout& layout);

void attention_gate_forward(const float* a, const float* qkv, float* y, int64_t R, const QkvLayout& layout);

void attention_gate_backward(const float* dy, const float* a, const float* qkv, float* da, float* dqkv, int64_t R,
                             const QkvLayout& layout);

}  // namespace minillm::kernels
