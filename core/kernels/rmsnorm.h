#pragma once
// RMSNorm (Zhang & Sennrich 2019, "Root Mean Square Layer Normalization", eq. 4).
//
//   rstd[r] = (mean_j x[r,j]^2 + eps)^(-1/2)
//   y[r,j]  = x[r,j] * rstd[r] * (offset + w[j])        offset 0, or 1 for the zero-centered form whose w starts at 0
//
// R rows (tokens), d width. x, y, dx, dy [R, d]; w, dw [d]; rstd [R], saved by forward for backward.
// Backward adds to dx and dw; either may be null.

#include <cstdint>

namespace minillm::kernels {

template <class T>
void rmsnorm_forward_reference(const T* x, const T* w, T* y, T* rstd, int64_t R, int64_t d, double eps, double offset);

template <class T>
void rmsnorm_backward_reference(const T* dy, const T* x, const T* w, const T* rstd, T* dx, T* dw, int64_t R, int64_t d,
                                double offset);

void rmsnorm_forward(const float* x, const float* w, float* y, float* rstd, int64_t R, int64_t d, double eps,
                     double offset);

/// `partial` holds rmsnorm_partials(R) * d floats of scratch.
void rmsnorm_backward(const float* dy, const float* x, const float* w, const float* rstd, float* dx, float* dw,
                      float* partial, int64_t R, int64_t d, double offset);

int64_t rmsnorm_partials(int64_t R);

}  // namespace minillm::kernels
