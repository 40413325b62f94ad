#pragma once
// LayerNorm (Ba, Kiros & Hinton 2016, "Layer Normalization", eq. 4), with the biased variance.
//
//   mean[r] = mean_j x[r,j]
//   rstd[r] = (mean_j (x[r,j] - mean[r])^2 + eps)^(-1/2)        two passes: no difference of large squares
//   y[r,j]  = (x[r,j] - mean[r]) * rstd[r] * w[j] + b[j]
//
// R rows (tokens), d width. x, y, dx, dy [R, d]; w, b, dw, db [d]; mean, rstd [R], saved by forward for backward.
// Backward adds to dx, dw and db; each may be null.

#include <cstdint>

namespace minillm::kernels {

template <class T>
void layernorm_forward_reference(const T* x, const T* w, const T* b, T* y, T* mean, T* rstd, int64_t R, int64_t d,
                                 double eps);

template <class T>
void layernorm_backward_reference(const T* dy, const T* x, const T* w, const T* mean, const T* rstd, T* dx, T* dw,
                                  T* db, int64_t R, int64_t d);

void layernorm_forward(const float* x, const float* w, const float* b, float* y, float* mean, float* rstd, int64_t R,
                       int64_t d, double eps);

/// `partial` holds layernorm_partials(R) * 2 * d floats of scratch.
void layernorm_backward(const float* dy, const float* x, const float* w, const float* mean, const float* rstd,
                        float* dx, float* dw, float* db, float* partial, int64_t R, int64_t d);

int64_t layernorm_partials(int64_t R);

}  // namespace minillm::kernels
