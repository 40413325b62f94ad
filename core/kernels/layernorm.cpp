#include "core/kernels/layernorm.h"

#include "core/kernels/rows.h"
#include "core/kernels/simd.h"
#include "core/parallel.h"

#include <cmath>
#include <cstring>

namespace minillm::kernels {

namespace {

constexpr int64_t rows_per_chunk = 64;

MINILLM_SIMD float sum_of_centered_squares(const float* x, float mean, int64_t d) {
  return sum_in_lanes(d, [=](int64_t j) { return (x[j] - mean) * (x[j] - mean); });
}

MINILLM_SIMD void normalize_row(const float* x, const float* w, const float* b, float* y, float mean, float rstd,
                                int64_t d) {
  for (int64_t j = 0; j < d; ++j) {
    y[j] = (x[j] - mean) * rstd * w[j] + b[j];
  }
}

// The sums over a row of g = dy * w and of g * n, n the normalized value. Two loops: GCC 12 makes
// thousands of shuffles of one loop with two sets of lanes.
MINILLM_SIMD float sum_g(const float* dy, const float* w, int64_t d) {
  return sum_in_lanes(d, [=](int64_t j) { return dy[j] * w[j]; });
}

MINILLM_SIMD float sum_gn(const float* dy, const float* x, const float* w, float mean, float rstd, int64_t d) {
  return sum_in_lanes(d, [=](int64_t j) { return dy[j] * w[j] * ((x[j] - mean) * rstd); });
}

MINILLM_SIMD void add_dx(const float* dy, const float* x, const float* w, float* dx, float mean, float rstd,
                         float mean_g, float mean_gn, int64_t d) {
  for (int64_t j = 0; j < d; ++j) {
    const float normalized = (x[j] - mean) * rstd;
    dx[j] += rstd * (dy[j] * w[j] - mean_g - normalized * mean_gn);
  }
}

MINILLM_SIMD void add_dw_db(const float* dy, const float* x, float* dw, float* db, float mean, float rstd, int64_t d) {
  for (int64_t j = 0; j < d; ++j) {
    dw[j] += dy[j] * ((x[j] - mean) * rstd);
    db[j] += dy[j];
  }
}

}  // namespace

void layernorm_forward(const float* x, const float* w, const float* b, float* y, float* mean, float* rstd, int64_t R,
                       int64_t d, double eps) {
  parallel_for(R, rows_per_chunk, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* x_r = x + r * d;
      mean[r] = sum_of(x_r, d) / static_cast<float>(d);
      const float variance = sum_of_centered_squares(x_r, mean[r], d) / static_cast<float>(d);
      rstd[r] = 1.0F / std::sqrt(variance + static_cast<float>(eps));
      normalize_row(x_r, w, b, y + r * d, mean[r], rstd[r], d);
    }
  });
}

int64_t layernorm_partials(int64_t R) {
  return (R + rows_per_chunk - 1) / rows_per_chunk;
}

// The formulas are derived above layernorm_backward_reference. dw and db are summed per chunk of rows, then over chunks
// in order; a chunk's partial sums are its dw, then its db.
void layernorm_backward(const float* dy, const float* x, const float* w, const float* mean, const float* rstd,
                        float* dx, float* dw, float* db, float* partial, int64_t R, int64_t d) {
  const bool with_parameters = dw != nullptr || db != nullptr;
  parallel_for(R, rows_per_chunk, [=](int64_t begin, int64_t end) {
    float* dw_chunk = partial + begin / rows_per_chunk * 2 * d;
    float* db_chunk = dw_chunk + d;
    std::memset(dw_chunk, 0, sizeof(float) * static_cast<size_t>(2 * d));
    for (int64_t r = begin; r < end; ++r) {
      const float* dy_r = dy + r * d;
      const float* x_r = x + r * d;
      if (dx != nullptr) {
        const float mean_g = sum_g(dy_r, w, d) / static_cast<float>(d);
        const float mean_gn = sum_gn(dy_r, x_r, w, mean[r], rstd[r], d) / static_cast<float>(d);
        add_dx(dy_r, x_r, w, dx + r * d, mean[r], rstd[r], mean_g, mean_gn, d);
      }
      if (with_parameters) {
        add_dw_db(dy_r, x_r, dw_chunk, db_chunk, mean[r], rstd[r], d);
      }
    }
  });
  for (int64_t chunk = 0; dw != nullptr && chunk < layernorm_partials(R); ++chunk) {
    add_row(partial + chunk * 2 * d, dw, d);
  }
  for (int64_t chunk = 0; db != nullptr && chunk < layernorm_partials(R); ++chunk) {
    add_row(partial + chunk * 2 * d + d, db, d);
  }
}

}  // namespace minillm::kernels
