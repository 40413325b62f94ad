#include "core/kernels/qk_norm.h"

#include <cmath>

namespace minillm::kernels {

template <class T>
void qk_norm_forward_reference(const T* x, const T* q_gain, const T* k_gain, T* y, T* rstd, int64_t R,
                               const QkvLayout& layout, double eps, double offset) {
  const int64_t width = layout.width();
  const int64_t head_dim = layout.head_dim;
  for (int64_t r = 0; r < R; ++r) {
    const T* x_r = x + r * width;
    T* y_r = y + r * width;
    for (int64_t j = 0; j < width; ++j) {
      y_r[j] = x_r[j];
    }
    for (int64_t i = 0; i < layout.qk_slices(); ++i) {
      const T* x_i = x_r + layout.slice_offset(i);
      const T* w = i < layout.n_heads ? q_gain : k_gain;
      T* y_i = y_r + layout.slice_offset(i);
      T sum_of_squares = 0;
      for (int64_t j = 0; j < head_dim; ++j) {
        sum_of_squares += x_i[j] * x_i[j];
      }
      const T mean_square = sum_of_squares / static_cast<T>(head_dim);
      const T rstd_i = T{1} / std::sqrt(mean_square + static_cast<T>(eps));
      for (int64_t j = 0; j < head_dim; ++j) {
        const T gain = static_cast<T>(offset) + w[j];
        y_i[j] = x_i[j] * rstd_i * gain;
      }
      rstd[r * layout.qk_slices() + i] = rstd_i;
    }
  }
}

namespace {

// The gradient of one slice; derived in rmsnorm_reference.cpp. With g_j = dy_j * gain_j:
//   dx_j = rstd * g_j - x_j * rstd^3 / head_dim * sum_k g_k x_k
//   dw_j = dy_j * x_j * rstd
template <class T>
void slice_backward(const T* dy, const T* x, const T* w, T rstd, T* dx, T* dw, int64_t head_dim, double offset) {
  if (dx != nullptr) {
    T dot = 0;
    for (int64_t j = 0; j < head_dim; ++j) {
      const T gain = static_cast<T>(offset) + w[j];
      dot += dy[j] * gain * x[j];
    }
    const T coefficient = rstd * rstd * rstd * dot / static_cast<T>(head_dim);
    for (int64_t j = 0; j < head_dim; ++j) {
      const T gain = static_cast<T>(offset) + w[j];
      dx[j] += rstd * dy[j] * gain - x[j] * coefficient;
    }
  }
  if (dw != nullptr) {
    for (int64_t j = 0; j < head_dim; ++j) {
      dw[j] += dy[j] * x[j] * rstd;
    }
  }
}

}  // namespace

template <class T>
void qk_norm_backward_reference(const T* dy, const T* x, const T* q_gain, const T* k_gain, const T* rstd, T* dx,
                                T* dq_gain, T* dk_gain, int64_t R, const QkvLayout& layout, double offset) {
  const int64_t width = layout.width();
  const int64_t head_dim = layout.head_dim;
  for (int64_t r = 0; r < R; ++r) {
    const T* dy_r = dy + r * width;
    const T* x_r = x + r * width;
    T* dx_r = dx == nullptr ? nullptr : dx + r * width;
    for (int64_t i = 0; i < layout.qk_slices(); ++i) {
      const int64_t start = layout.slice_offset(i);
      const T* w = i < layout.n_heads ? q_gain : k_gain;
      T* dw = i < layout.n_heads ? dq_gain : dk_gain;
      T* dx_i = dx == nullptr ? nullptr : dx_r + start;
      const T rstd_i = rstd[r * layout.qk_slices() + i];
      slice_backward(dy_r + start, x_r + start, w, rstd_i, dx_i, dw, head_dim, offset);
      for (int64_t j = head_dim; dx != nullptr && j < layout.slice_width(i); ++j) {
        dx_i[j] += dy_r[start + j];
      }
    }
    for (int64_t j = layout.v_offset(); dx != nullptr && j < width; ++j) {
      dx_r[j] += dy_r[j];
    }
  }
}

template void qk_norm_forward_reference(const float*, const float*, const float*, float*, float*, int64_t,
                                        const QkvLayout&, double, double);
template void qk_norm_forward_reference(const double*, const double*, const double*, double*, double*, int64_t,
                                        const QkvLayout&, double, double);
template void qk_norm_backward_reference(const float*, const float*, const float*, const float*, const float*, float*,
                                         float*, float*, int64_t, const QkvLayout&, double);
template void qk_norm_backward_reference(const double*, const double*, const double*, const double*, const double*,
                                         double*, double*, double*, int64_t, const QkvLayout&, double);

}  // namespace minillm::kernels
