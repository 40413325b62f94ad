#pragma once
// Softmax and its logarithm over rows, shifted by the row's maximum so that no exponential overflows.
//
//   m[r] = max_j x[r,j]                    s[r] = sum_j exp(x[r,j] - m[r])
//   softmax      y[r,j] = exp(x[r,j] - m[r]) / s[r]
//   log_softmax  y[r,j] = x[r,j] - m[r] - log s[r]
//
// R rows, N columns; x, y, dx, dy [R, N]. A row of -inf alone (everything masked) gives softmax 0 and log_softmax -inf,
// not NaN. Backward needs y alone and adds to dx.

#include <cstdint>

namespace minillm::kernels {

template <class T>
void softmax_forward_reference(const T* x, T* y, int64_t R, int64_t N);
template <class T>
void softmax_backward_reference(const T* dy, const T* y, T* dx, int64_t R, int64_t N);
template <class T>
void log_softmax_forward_reference(const T* x, T* y, int64_t R, int64_t N);
template <class T>
void log_softmax_backward_reference(const T* dy, const T* y, T* dx, int64_t R, int64_t N);

void softmax_forward(const float* x, float* y, int64_t R, int64_t N);
void softmax_backward(const float* dy, const float* y, float* dx, int64_t R, int64_t N);
void log_softmax_forward(const float* x, float* y, int64_t R, int64_t N);
void log_softmax_backward(const float* dy, const float* y, float* dx, int64_t R, int64_t N);

}  // namespace minillm::kernels
