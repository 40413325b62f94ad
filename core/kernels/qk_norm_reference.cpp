#include "core/kernels/qk_norm.h"

#include "core/kernels/rmsnorm.h"

namespace minillm::kernels {

template <class T>
void qk_norm_forward_reference(const T* x, const T* q_gain, const T* k_gain, T* y, T* rstd, int64_t R,
                               const QkvLayout& layout, double eps, double offset) {
  const int64_t width = layout.width();
  const int64_t slices = layout.qk_slices();
  for (int64_t r = 0; r < R; ++r) {
    const T* x_r = x + r * width;
    T* y_r = y + r * width;
    for (int64_t j = 0; j < width; ++j) {
      y_r[j] = x_r[j];
    }
    for (int64_t i = 0; i < slices; ++i) {
      const int64_t start = layout.slice_offset(i);
      const T* w = i < layout.n_heads ? q_gain : k_gain;
      T* rstd_i = rstd + r * slices + i;
      rmsnorm_forward_reference(x_r + start, w, y_r + start, rstd_i, 1, layout.head_dim, eps, offset);
    }
  }
}

// A slice's gradient is RMSNorm's, derived above rmsnorm_backward_reference; what was copied passes its own on.
template <class T>
void qk_norm_backward_reference(const T* dy, const T* x, const T* q_gain, const T* k_gain, const T* rstd, T* dx,
                                T* dq_gain, T* dk_gain, int64_t R, const QkvLayout& layout, double offset) {
  const int64_t width = layout.width();
  const int64_t slices = layout.qk_slices();
  const int64_t head_dim = layout.head_dim;
  for (int64_t r = 0; r < R; ++r) {
    const T* dy_r = dy + r * width;
    const T* x_r = x + r * width;
    T* dx_r = dx == nullptr ? nullptr : dx + r * width;
    for (int64_t i = 0; i < slices; ++i) {
      const int64_t start = layout.slice_offset(i);
      const T* w = i < layout.n_heads ? q_gain : k_gain;
      T* dw = i < layout.n_heads ? dq_gain : dk_gain;
      T* dx_i = dx == nullptr ? nullptr : dx_r + start;
      const T* rstd_i = rstd + r * slices + i;
      rmsnorm_backward_reference(dy_r + start, x_r + start, w, rstd_i, dx_i, dw, 1, head_dim, offset);
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
