#include "core/kernels/batchnorm.h"

#include "core/kernels/rows.h"
#include "core/kernels/simd.h"
#include "core/parallel.h"

#include <cmath>
#include <cstring>

namespace minillm::kernels {

namespace {

constexpr int64_t rows_per_chunk = 64;

int64_t chunks_of(int64_t R) {
  return (R + rows_per_chunk - 1) / rows_per_chunk;
}

MINILLM_SIMD void add_centered_squares(const float* x, const float* mean, float* squares, int64_t d) {
  for (int64_t j = 0; j < d; ++j) {
    const float centered = x[j] - mean[j];
    squares[j] += centered * centered;
  }
}

/// y = (x - mean) * scale + shift, channel by channel.
MINILLM_SIMD void affine_row(const float* x, const float* mean, const float* scale, const float* shift, float* y,
                             int64_t d) {
  for (int64_t j = 0; j < d; ++j) {
    y[j] = (x[j] - mean[j]) * scale[j] + shift[j];
  }
}

MINILLM_SIMD void add_dy_and_dyn(const float* dy, const float* x, const float* mean, const float* rstd, float* sum_dyn,
                                 float* sum_dy, int64_t d) {
  for (int64_t j = 0; j < d; ++j) {
    sum_dyn[j] += dy[j] * ((x[j] - mean[j]) * rstd[j]);
    sum_dy[j] += dy[j];
  }
}

MINILLM_SIMD void add_dx(const float* dy, const float* x, const float* mean, const float* rstd, const float* scale,
                         const float* mean_dyn, const float* mean_dy, float* dx, int64_t d) {
  for (int64_t j = 0; j < d; ++j) {
    const float normalized = (x[j] - mean[j]) * rstd[j];
    dx[j] += scale[j] * (dy[j] - mean_dy[j] - normalized * mean_dyn[j]);
  }
}

/// Sums over rows into `sums` [width]: add(row, partial sums) chunk by chunk, then the chunks in order.
template <class Add>
void sum_rows(int64_t R, int64_t width, float* partial, float* sums, Add add) {
  parallel_for(R, rows_per_chunk, [=](int64_t begin, int64_t end) {
    float* chunk = partial + begin / rows_per_chunk * width;
    std::memset(chunk, 0, sizeof(float) * static_cast<size_t>(width));
    for (int64_t r = begin; r < end; ++r) {
      add(r, chunk);
    }
  });
  std::memset(sums, 0, sizeof(float) * static_cast<size_t>(width));
  for (int64_t chunk = 0; chunk < chunks_of(R); ++chunk) {
    add_row(partial + chunk * width, sums, width);
  }
}

float reciprocal_root(float variance, double eps) {
  return 1.0F / std::sqrt(variance + static_cast<float>(eps));
}

}  // namespace

int64_t batchnorm_scratch(int64_t R, int64_t d) {
  return (2 * chunks_of(R) + 4) * d;
}

void batchnorm_forward(const float* x, const float* w, const float* b, float* y, float* mean, float* variance,
                       float* scratch, int64_t R, int64_t d, double eps) {
  float* scale = scratch;
  float* partial = scale + d;
  const float share = 1.0F / static_cast<float>(R);
  sum_rows(R, d, partial, mean, [=](int64_t r, float* sums) { add_row(x + r * d, sums, d); });
  scale_row(mean, share, d);
  sum_rows(R, d, partial, variance, [=](int64_t r, float* sums) { add_centered_squares(x + r * d, mean, sums, d); });
  scale_row(variance, share, d);
  for (int64_t j = 0; j < d; ++j) {
    scale[j] = reciprocal_root(variance[j], eps) * w[j];
  }
  parallel_for(R, rows_per_chunk, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      affine_row(x + r * d, mean, scale, b, y + r * d, d);
    }
  });
}

// The formulas are derived above batchnorm_backward_reference.
void batchnorm_backward(const float* dy, const float* x, const float* w, const float* mean, const float* variance,
                        float* dx, float* dw, float* db, float* scratch, int64_t R, int64_t d, double eps) {
  float* sums = scratch;  // of dy n, then of dy
  float* rstd = sums + 2 * d;
  float* scale = rstd + d;
  float* partial = scale + d;
  for (int64_t j = 0; j < d; ++j) {
    rstd[j] = reciprocal_root(variance[j], eps);
    scale[j] = rstd[j] * w[j];
  }
  sum_rows(R, 2 * d, partial, sums,
           [=](int64_t r, float* chunk) { add_dy_and_dyn(dy + r * d, x + r * d, mean, rstd, chunk, chunk + d, d); });
  if (dw != nullptr) {
    add_row(sums, dw, d);
  }
  if (db != nullptr) {
    add_row(sums + d, db, d);
  }
  if (dx == nullptr) {
    return;
  }
  scale_row(sums, 1.0F / static_cast<float>(R), 2 * d);
  parallel_for(R, rows_per_chunk, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      add_dx(dy + r * d, x + r * d, mean, rstd, scale, sums, sums + d, dx + r * d, d);
    }
  });
}

}  // namespace minillm::kernels
