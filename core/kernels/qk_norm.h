#pragma once
// RMSNorm of every query and key slice (Henry et al. 2020, "Query-Key Normalization for Transformers", with RMSNorm in
// place of the L2 norm as in Qwen3) on packed queries, keys and values.
//
//   rstd[r,i] = (mean_j x[r,i,j]^2 + eps)^(-1/2)               over the head_dim elements of slice i
//   y[r,i,j]  = x[r,i,j] * rstd[r,i] * (offset + w[j])         w = q_gain for query slices, k_gain for key slices
//
// Gates and values are copied. R rows (tokens), S = layout.qk_slices(). x, y, dx, dy [R, layout.width()]; q_gain,
// k_gain and their gradients [head_dim]; rstd [R, S], saved by forward for backward. Backward adds to dx, dq_gain and
// dk_gain; each may be null.

#include "core/kernels/attention.h"

#include <cstdint>

namespace minillm::kernels {

template <class T>
void qk_norm_forward_reference(const T* x, const T* q_gain, const T* k_gain, T* y, T* rstd, int64_t R,
                               const QkvLayout& layout, double eps, double offset);

template <class T>
void qk_norm_backward_reference(const T* dy, const T* x, const T* q_gain, const T* k_gain, const T* rstd, T* dx,
                                T* dq_gain, T* dk_gain, int64_t R, const QkvLayout& layout, double offset);

void qk_norm_forward(const float* x, const float* q_gain, const float* k_gain, float* y, float* rstd, int64_t R,
                     const QkvLayout& layout, double eps, double offset);

/// `partial` holds qk_norm_partials(R) * 2 * head_dim floats of scratch.
void qk_norm_backward(const float* dy, const float* x, const float* q_gain, const float* k_gain, const float* rstd,
                      float* dx, float* dq_gain, float* dk_gain, float* partial, int64_t R, const QkvLayout& layout,
                      double offset);

int64_t qk_norm_partials(int64_t R);

}  // namespace minillm::kernels
