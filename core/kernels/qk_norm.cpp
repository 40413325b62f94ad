#include "core/kernels/qk_norm.h"

#include "core/kernels/rows.h"
#include "core/kernels/simd.h"
#include "core/parallel.h"

#include <cmath>
#include <cstring>

namespace minillm::kernels {

namespace {

constexpr int64_t rows_per_chunk = 64;

inline float sum_of_squares(const float* x, int64_t d) {
  return sum_in_lanes(d, [=](int64_t j) { return x[j] * x[j]; });
}

inline float dot_with_gain(const float* dy, const float* x, const float* w, float offset, int64_t d) {
  return sum_in_lanes(d, [=](int64_t j) { return dy[j] * (offset + w[j]) * x[j]; });
}

/// One token's row, so that slices as short as 32 floats do not cost a call each.
MINILLM_SIMD void normalize_row(const float* x, const float* q_gain, const float* k_gain, float* y, float* rstd,
                                const QkvLayout& layout, float eps, float offset) {
  const int64_t d = layout.head_dim;
  for (int64_t i = 0; i < layout.qk_slices(); ++i) {
    const float* x_i = x + layout.slice_offset(i);
    const float* w = i < layout.n_heads ? q_gain : k_gain;
    float* y_i = y + layout.slice_offset(i);
    const float mean_square = sum_of_squares(x_i, d) / static_cast<float>(d);
    const float rstd_i = 1.0F / std::sqrt(mean_square + eps);
    for (int64_t j = 0; j < d; ++j) {
      y_i[j] = x_i[j] * rstd_i * (offset + w[j]);
    }
    rstd[i] = rstd_i;
  }
}

MINILLM_SIMD void add_dx_row(const float* dy, const float* x, const float* q_gain, const float* k_gain,
                             const float* rstd, float* dx, const QkvLayout& layout, float offset) {
  const int64_t d = layout.head_dim;
  for (int64_t i = 0; i < layout.qk_slices(); ++i) {
    const float* dy_i = dy + layout.slice_offset(i);
    const float* x_i = x + layout.slice_offset(i);
    const float* w = i < layout.n_heads ? q_gain : k_gain;
    float* dx_i = dx + layout.slice_offset(i);
    const float dot = dot_with_gain(dy_i, x_i, w, offset, d);
    const float coefficient = rstd[i] * rstd[i] * rstd[i] * dot / static_cast<float>(d);
    for (int64_t j = 0; j < d; ++j) {
      dx_i[j] += rstd[i] * dy_i[j] * (offset + w[j]) - x_i[j] * coefficient;
    }
    for (int64_t j = d; j < layout.slice_width(i); ++j) {
      dx_i[j] += dy_i[j];
    }
  }
  for (int64_t j = layout.v_offset(); j < layout.width(); ++j) {
    dx[j] += dy[j];
  }
}

/// Adds slices [first, last) of a row to one gain's gradient.
MINILLM_SIMD void add_dw_row(const float* dy, const float* x, const float* rstd, float* dw, int64_t first, int64_t last,
                             const QkvLayout& layout) {
  for (int64_t i = first; i < last; ++i) {
    const float* dy_i = dy + layout.slice_offset(i);
    const float* x_i = x + layout.slice_offset(i);
    for (int64_t j = 0; j < layout.head_dim; ++j) {
      dw[j] += dy_i[j] * x_i[j] * rstd[i];
    }
  }
}

}  // namespace

void qk_norm_forward(const float* x, const float* q_gain, const float* k_gain, float* y, float* rstd, int64_t R,
                     const QkvLayout& layout, double eps, double offset) {
  const int64_t width = layout.width();
  parallel_for(R, rows_per_chunk, [=, &layout](int64_t begin, int64_t end) {
    std::memcpy(y + begin * width, x + begin * width, sizeof(float) * static_cast<size_t>((end - begin) * width));
    for (int64_t r = begin; r < end; ++r) {
      normalize_row(x + r * width, q_gain, k_gain, y + r * width, rstd + r * layout.qk_slices(), layout,
                    static_cast<float>(eps), static_cast<float>(offset));
    }
  });
}

int64_t qk_norm_partials(int64_t R) {
  return (R + rows_per_chunk - 1) / rows_per_chunk;
}

// The gains' gradients are summed per chunk of rows, then over chunks in order.
void qk_norm_backward(const float* dy, const float* x, const float* q_gain, const float* k_gain, const float* rstd,
                      float* dx, float* dq_gain, float* dk_gain, float* partial, int64_t R, const QkvLayout& layout,
                      double offset) {
  const int64_t width = layout.width();
  const int64_t slices = layout.qk_slices();
  const int64_t d = layout.head_dim;
  const float gain_offset = static_cast<float>(offset);
  parallel_for(R, rows_per_chunk, [=, &layout](int64_t begin, int64_t end) {
    float* dq_chunk = partial + begin / rows_per_chunk * 2 * d;
    float* dk_chunk = dq_chunk + d;
    std::memset(dq_chunk, 0, sizeof(float) * static_cast<size_t>(2 * d));
    for (int64_t r = begin; r < end; ++r) {
      const float* dy_r = dy + r * width;
      const float* x_r = x + r * width;
      const float* rstd_r = rstd + r * slices;
      if (dx != nullptr) {
        add_dx_row(dy_r, x_r, q_gain, k_gain, rstd_r, dx + r * width, layout, gain_offset);
      }
      add_dw_row(dy_r, x_r, rstd_r, dq_chunk, 0, layout.n_heads, layout);
      add_dw_row(dy_r, x_r, rstd_r, dk_chunk, layout.n_heads, slices, layout);
    }
  });
  for (int64_t chunk = 0; chunk < qk_norm_partials(R); ++chunk) {
    if (dq_gain != nullptr) {
      add_row(partial + chunk * 2 * d, dq_gain, d);
    }
    if (dk_gain != nullptr) {
      add_row(partial + chunk * 2 * d + d, dk_gain, d);
    }
  }
}

}  // namespace minillm::kernels
