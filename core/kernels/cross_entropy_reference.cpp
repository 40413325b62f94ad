#include "core/kernels/cross_entropy.h"

#include <cmath>

namespace minillm::kernels {

template <class T>
double cross_entropy_forward_reference(const T* x, const int32_t* targets, T* row_max, T* row_sum, int64_t R,
                                       int64_t V) {
  double loss = 0;
  for (int64_t r = 0; r < R; ++r) {
    if (targets[r] < 0) {
      continue;
    }
    const T* x_r = x + r * V;
    T max = x_r[0];
    for (int64_t j = 1; j < V; ++j) {
      max = x_r[j] > max ? x_r[j] : max;
    }
    T sum = 0;
    for (int64_t j = 0; j < V; ++j) {
      sum += std::exp(x_r[j] - max);
    }
    const double x_target = static_cast<double>(x_r[targets[r]]);
    loss += static_cast<double>(max) - x_target + std::log(static_cast<double>(sum));
    row_max[r] = max;
    row_sum[r] = sum;
  }
  return loss;
}

// forward: loss_r = m - x_t + log s, so dloss_r/dx_j = exp(x_j - m) / s - [j = t]: the terms in dm cancel.
template <class T>
void cross_entropy_backward_reference(const T* x, const int32_t* targets, const T* row_max, const T* row_sum, T* dx,
                                      int64_t R, int64_t V, double unit) {
  const T dloss = static_cast<T>(unit);
  for (int64_t r = 0; r < R; ++r) {
    if (targets[r] < 0) {
      continue;
    }
    const T* x_r = x + r * V;
    T* dx_r = dx + r * V;
    for (int64_t j = 0; j < V; ++j) {
      const T probability = std::exp(x_r[j] - row_max[r]) / row_sum[r];
      dx_r[j] += dloss * probability;
    }
    dx_r[targets[r]] -= dloss;
  }
}

template double cross_entropy_forward_reference(const float*, const int32_t*, float*, float*, int64_t, int64_t);
template double cross_entropy_forward_reference(const double*, const int32_t*, double*, double*, int64_t, int64_t);
template void cross_entropy_backward_reference(const float*, const int32_t*, const float*, const float*, float*,
                                               int64_t, int64_t, double);
template void cross_entropy_backward_reference(const double*, const int32_t*, const double*, const double*, double*,
                                               int64_t, int64_t, double);

}  // namespace minillm::kernels
