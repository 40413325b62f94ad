#include "core/kernels/layernorm.h"

#include <cmath>

namespace minillm::kernels {

template <class T>
void layernorm_forward_reference(const T* x, const T* w, const T* b, T* y, T* mean, T* rstd, int64_t R, int64_t d,
                                 double eps) {
  for (int64_t r = 0; r < R; ++r) {
    const T* x_r = x + r * d;
    T* y_r = y + r * d;
    T sum = 0;
    for (int64_t j = 0; j < d; ++j) {
      sum += x_r[j];
    }
    const T mean_r = sum / static_cast<T>(d);
    T sum_of_squares = 0;
    for (int64_t j = 0; j < d; ++j) {
      const T centered = x_r[j] - mean_r;
      sum_of_squares += centered * centered;
    }
    const T variance = sum_of_squares / static_cast<T>(d);
    const T rstd_r = T{1} / std::sqrt(variance + static_cast<T>(eps));
    for (int64_t j = 0; j < d; ++j) {
      const T normalized = (x_r[j] - mean_r) * rstd_r;
      y_r[j] = normalized * w[j] + b[j];
    }
    mean[r] = mean_r;
    rstd[r] = rstd_r;
  }
}

// forward: n = (x - mean) * rstd, y = n * w + b. The mean and rstd depend on every x of the row:
//   dn_k/dx_j = rstd * ([j = k] - 1/d - n_j n_k / d)
// with g_j = dy_j * w_j:
//   dx_j = rstd * (g_j - mean_k(g_k) - n_j * mean_k(g_k n_k))
//   dw_j = sum over rows of dy_j * n_j
//   db_j = sum over rows of dy_j
template <class T>
void layernorm_backward_reference(const T* dy, const T* x, const T* w, const T* mean, const T* rstd, T* dx, T* dw,
                                  T* db, int64_t R, int64_t d) {
  for (int64_t r = 0; r < R; ++r) {
    const T* dy_r = dy + r * d;
    const T* x_r = x + r * d;
    const T mean_r = mean[r];
    const T rstd_r = rstd[r];
    if (dx != nullptr) {
      T* dx_r = dx + r * d;
      T sum_g = 0;
      T sum_gn = 0;
      for (int64_t j = 0; j < d; ++j) {
        const T g = dy_r[j] * w[j];
        const T normalized = (x_r[j] - mean_r) * rstd_r;
        sum_g += g;
        sum_gn += g * normalized;
      }
      const T mean_g = sum_g / static_cast<T>(d);
      const T mean_gn = sum_gn / static_cast<T>(d);
      for (int64_t j = 0; j < d; ++j) {
        const T g = dy_r[j] * w[j];
        const T normalized = (x_r[j] - mean_r) * rstd_r;
        dx_r[j] += rstd_r * (g - mean_g - normalized * mean_gn);
      }
    }
    for (int64_t j = 0; dw != nullptr && j < d; ++j) {
      dw[j] += dy_r[j] * (x_r[j] - mean_r) * rstd_r;
    }
    for (int64_t j = 0; db != nullptr && j < d; ++j) {
      db[j] += dy_r[j];
    }
  }
}

template void layernorm_forward_reference(const float*, const float*, const float*, float*, float*, float*, int64_t,
                                          int64_t, double);
template void layernorm_forward_reference(const double*, const double*, const double*, double*, double*, double*,
                                          int64_t, int64_t, double);
template void layernorm_backward_reference(const float*, const float*, const float*, const float*, const float*,
                                           float*, float*, float*, int64_t, int64_t);
template void layernorm_backward_reference(const double*, const double*, const double*, const double*, const double*,
                                           double*, double*, double*, int64_t, int64_t);

}  // namespace minillm::kernels
