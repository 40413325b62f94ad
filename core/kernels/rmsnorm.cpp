#include "core/kernels/rmsnorm.h"

#include "core/kernels/rows.h"
#include "core/kernels/simd.h"
#include "core/parallel.h"

#include <cmath>
#include <cstring>

namespace minillm::kernels {

namespace {

constexpr int64_t rows_per_chunk = 64;

MINILLM_SIMD float sum_of_squares(const float* x, int64_t d) {
  return sum_in_lanes(d, [=](int64_t j) { return x[j] * x[j]; });
}

MINILLM_SIMD void scale_row(const float* x, const float* w, float* y, float rstd, float offset, int64_t d) {
  for (int64_t j = 0; j < d; ++j) {
    y[j] = x[j] * rstd * (offset + w[j]);
  }
}

MINILLM_SIMD float dot_with_gain(const float* dy, const float* x, const float* w, float offset, int64_t d) {
  return sum_in_lanes(d, [=](int64_t j) { return dy[j] * (offset + w[j]) * x[j]; });
}

MINILLM_SIMD void add_dx(const float* dy, const float* x, const float* w, float* dx, float rstd, float coefficient,
                         float offset, int64_t d) {
  for (int64_t j = 0; j < d; ++j) {
    dx[j] += rstd * dy[j] * (offset + w[j]) - x[j] * coefficient;
  }
}

MINILLM_SIMD void add_dw(const float* dy, const float* x, float* dw, float rstd, int64_t d) {
  for (int64_t j = 0; j < d; ++j) {
    dw[j] += dy[j] * x[j] * rstd;
  }
}

}  // namespace

void rmsnorm_forward(const float* x, const float* w, float* y, float* rstd, int64_t R, int64_t d, double eps,
                     double offset) {
  parallel_for(R, rows_per_chunk, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* x_r = x + r * d;
      const float mean_square = sum_of_squares(x_r, d) / static_cast<float>(d);
      rstd[r] = 1.0F / std::sqrt(mean_square + static_cast<float>(eps));
      scale_row(x_r, w, y + r * d, rstd[r], static_cast<float>(offset), d);
    }
  });
}

int64_t rmsnorm_partials(int64_t R) {
  return (R + rows_per_chunk - 1) / rows_per_chunk;
}

// The formulas are derived above rmsnorm_backward_reference. dw is summed per chunk of rows, then over chunks in order.
void rmsnorm_backward(const float* dy, const float* x, const float* w, const float* rstd, float* dx, float* dw,
                      float* partial, int64_t R, int64_t d, double offset) {
  const float gain_offset = static_cast<float>(offset);
  parallel_for(R, rows_per_chunk, [=](int64_t begin, int64_t end) {
    float* dw_chunk = partial + begin / rows_per_chunk * d;
    std::memset(dw_chunk, 0, sizeof(float) * static_cast<size_t>(d));
    for (int64_t r = begin; r < end; ++r) {
      const float* dy_r = dy + r * d;
      const float* x_r = x + r * d;
      if (dx != nullptr) {
        const float dot = dot_with_gain(dy_r, x_r, w, gain_offset, d);
        const float coefficient = rstd[r] * rstd[r] * rstd[r] * dot / static_cast<float>(d);
        add_dx(dy_r, x_r, w, dx + r * d, rstd[r], coefficient, gain_offset, d);
      }
      if (dw != nullptr) {
        add_dw(dy_r, x_r, dw_chunk, rstd[r], d);
      }
    }
  });
  for (int64_t chunk = 0; dw != nullptr && chunk < rmsnorm_partials(R); ++chunk) {
    add_row(partial + chunk * d, dw, d);
  }
}

}  // namespace minillm::kernels
