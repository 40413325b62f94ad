#pragma once
// BatchNorm in training (Ioffe & Szegedy 2015, "Batch Normalization", algorithm 1): each channel over all rows.
//
//   mean[j]     = mean_r x[r,j]
//   variance[j] = mean_r (x[r,j] - mean[j])^2        biased; two passes: no difference of large squares
//   y[r,j]      = (x[r,j] - mean[j]) * (variance[j] + eps)^(-1/2) * w[j] + b[j]
//
// R rows (tokens), d width. x, y, dx, dy [R, d]; w, b, dw, db, mean, variance [d], the last two saved by forward for
// backward. Backward adds to dx, dw and db; each may be null.

#include <cstdint>

namespace minillm::kernels {

template <class T>
void batchnorm_forward_reference(const T* x, const T* w, const T* b, T* y, T* mean, T* variance, int64_t R, int64_t d,
                                 double eps);

template <class T>
void batchnorm_backward_reference(const T* dy, const T* x, const T* w, const T* mean, const T* variance, T* dx, T* dw,
                                  T* db, int64_t R, int64_t d, double eps);

/// `scratch` holds batchnorm_scratch(R, d) floats, here and below.
void batchnorm_forward(const float* x, const float* w, const float* b, float* y, float* mean, float* variance,
                       float* scratch, int64_t R, int64_t d, double eps);

void batchnorm_backward(const float* dy, const float* x, const float* w, const float* mean, const float* variance,
                        float* dx, float* dw, float* db, float* scratch, int64_t R, int64_t d, double eps);

int64_t batchnorm_scratch(int64_t R, int64_t d);

}  // namespace minillm::kernels
