#include "core/kernels/rmsnorm.h"

#include <cmath>

namespace minillm::kernels {

template <class T>
void rmsnorm_forward_reference(const T* x, const T* w, T* y, T* rstd, int64_t R, int64_t d, double eps, double offset) {
  for (int64_t r = 0; r < R; ++r) {
    const T* x_r = x + r * d;
    T* y_r = y + r * d;
    T sum_of_squares = 0;
    for (int64_t j = 0; j < d; ++j) {
      sum_of_squares += x_r[j] * x_r[j];
    }
    const T mean_square = sum_of_squares / static_cast<T>(d);
    const T rstd_r = T{1} / std::sqrt(mean_square + static_cast<T>(eps));
    for (int64_t j = 0; j < d; ++j) {
      const T gain = static_cast<T>(offset) + w[j];
      y_r[j] = x_r[j] * rstd_r * gain;
    }
    rstd[r] = rstd_r;
  }
}

// forward: y = x * rstd * gain, and rstd depends on every x of the row:
//   drstd/dx_j = -rstd^3 * x_j / d
// with g_j = dy_j * gain_j:
//   dx_j = rstd * g_j - x_j * rstd^3 / d * sum_k g_k x_k
//   dw_j = sum over rows of dy_j * x_j * rstd
template <class T>
void rmsnorm_backward_reference(const T* dy, const T* x, const T* w, const T* rstd, T* dx, T* dw, int64_t R, int64_t d,
                                double offset) {
  for (int64_t r = 0; r < R; ++r) {
    const T* dy_r = dy + r * d;
    const T* x_r = x + r * d;
    const T rstd_r = rstd[r];
    if (dx != nullptr) {
      T* dx_r = dx + r * d;
      T dot = 0;
      for (int64_t j = 0; j < d; ++j) {
        const T gain = static_cast<T>(offset) + w[j];
        dot += dy_r[j] * gain * x_r[j];
      }
      const T coefficient = rstd_r * rstd_r * rstd_r * dot / static_cast<T>(d);
      for (int64_t j = 0; j < d; ++j) {
        const T gain = static_cast<T>(offset) + w[j];
        dx_r[j] += rstd_r * dy_r[j] * gain - x_r[j] * coefficient;
      }
    }
    if (dw != nullptr) {
      for (int64_t j = 0; j < d; ++j) {
        dw[j] += dy_r[j] * x_r[j] * rstd_r;
      }
    }
  }
}

template void rmsnorm_forward_reference(const float*, const float*, float*, float*, int64_t, int64_t, double, double);
template void rmsnorm_forward_reference(const double*, const double*, double*, double*, int64_t, int64_t, double,
                                        double);
template void rmsnorm_backward_reference(const float*, const float*, const float*, const float*, float*, float*,
                                         int64_t, int64_t, double);
template void rmsnorm_backward_reference(const double*, const double*, const double*, const double*, double*, double*,
                                         int64_t, int64_t, double);

}  // namespace minillm::kernels
