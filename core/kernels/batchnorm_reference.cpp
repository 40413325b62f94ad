#include "core/kernels/batchnorm.h"

#include <cmath>

namespace minillm::kernels {

template <class T>
void batchnorm_forward_reference(const T* x, const T* w, const T* b, T* y, T* mean, T* variance, int64_t R, int64_t d,
                                 double eps) {
  for (int64_t j = 0; j < d; ++j) {
    T sum = 0;
    for (int64_t r = 0; r < R; ++r) {
      sum += x[r * d + j];
    }
    mean[j] = sum / static_cast<T>(R);
    T squares = 0;
    for (int64_t r = 0; r < R; ++r) {
      const T centered = x[r * d + j] - mean[j];
      squares += centered * centered;
    }
    variance[j] = squares / static_cast<T>(R);
    const T rstd = T{1} / std::sqrt(variance[j] + static_cast<T>(eps));
    for (int64_t r = 0; r < R; ++r) {
      const T normalized = (x[r * d + j] - mean[j]) * rstd;
      y[r * d + j] = normalized * w[j] + b[j];
    }
  }
}

// forward: n = (x - mean) * rstd, y = n * w + b. Mean and rstd depend on every x of the column:
//   dn_k/dx_r = rstd * ([r = k] - 1/R - n_r n_k / R)
// so with db_j = sum_r dy_rj and dw_j = sum_r dy_rj n_rj
//   dx_rj = w_j * rstd_j * (dy_rj - db_j / R - n_rj * dw_j / R)
template <class T>
void batchnorm_backward_reference(const T* dy, const T* x, const T* w, const T* mean, const T* variance, T* dx, T* dw,
                                  T* db, int64_t R, int64_t d, double eps) {
  for (int64_t j = 0; j < d; ++j) {
    const T rstd = T{1} / std::sqrt(variance[j] + static_cast<T>(eps));
    T sum_dy = 0;
    T sum_dyn = 0;
    for (int64_t r = 0; r < R; ++r) {
      const T normalized = (x[r * d + j] - mean[j]) * rstd;
      sum_dy += dy[r * d + j];
      sum_dyn += dy[r * d + j] * normalized;
    }
    const T mean_dy = sum_dy / static_cast<T>(R);
    const T mean_dyn = sum_dyn / static_cast<T>(R);
    for (int64_t r = 0; dx != nullptr && r < R; ++r) {
      const T normalized = (x[r * d + j] - mean[j]) * rstd;
      dx[r * d + j] += w[j] * rstd * (dy[r * d + j] - mean_dy - normalized * mean_dyn);
    }
    if (dw != nullptr) {
      dw[j] += sum_dyn;
    }
    if (db != nullptr) {
      db[j] += sum_dy;
    }
  }
}

template void batchnorm_forward_reference(const float*, const float*, const float*, float*, float*, float*, int64_t,
                                          int64_t, double);
template void batchnorm_forward_reference(const double*, const double*, const double*, double*, double*, double*,
                                          int64_t, int64_t, double);
template void batchnorm_backward_reference(const float*, const float*, const float*, const float*, const float*, float*,
                                           float*, float*, int64_t, int64_t, double);
template void batchnorm_backward_reference(const double*, const double*, const double*, const double*, const double*,
                                           double*, double*, double*, int64_t, int64_t, double);

}  // namespace minillm::kernels
