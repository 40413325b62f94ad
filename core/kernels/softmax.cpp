#include "core/kernels/softmax.h"

#include "core/kernels/elementwise.h"
#include "core/kernels/exp.h"
#include "core/kernels/rows.h"
#include "core/kernels/simd.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace minillm::kernels {

namespace {

/// As in the reference: a row of -inf alone is shifted by 0.
float shift_of(const float* x, int64_t N) {
  const float m = largest_of(x, N);
  return m == -std::numeric_limits<float>::infinity() ? 0.0F : m;
}

MINILLM_SIMD float dot(const float* a, const float* b, int64_t N) {
  return sum_in_lanes(N, [=](int64_t j) { return a[j] * b[j]; });
}

MINILLM_SIMD void add_softmax_slope(const float* dy, const float* y, float* dx, float mean, int64_t N) {
  for (int64_t j = 0; j < N; ++j) {
    dx[j] += y[j] * (dy[j] - mean);
  }
}

MINILLM_SIMD void set_log_softmax(const float* x, float* y, float shift, float log_sum, int64_t N) {
  for (int64_t j = 0; j < N; ++j) {
    y[j] = x[j] - shift - log_sum;
  }
}

MINILLM_SIMD void add_log_softmax_slope(const float* dy, const float* y, float* dx, float sum_dy, int64_t N) {
  for (int64_t j = 0; j < N; ++j) {
    dx[j] += dy[j] - fast_exp(y[j]) * sum_dy;
  }
}

/// Calls body(r) for every row, in parallel.
template <class Body>
void for_each_row(int64_t R, int64_t N, Body body) {
  const int64_t rows_per_chunk = std::max<int64_t>(1, elements_per_chunk / std::max<int64_t>(1, N));
  parallel_for(R, rows_per_chunk, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      body(r);
    }
  });
}

}  // namespace

void softmax_forward(const float* x, float* y, int64_t R, int64_t N) {
  for_each_row(R, N, [=](int64_t r) {
    const float* x_r = x + r * N;
    float* y_r = y + r * N;
    const float sum = exp_shifted(x_r, y_r, shift_of(x_r, N), N);
    scale_row(y_r, sum == 0.0F ? 0.0F : 1.0F / sum, N);
  });
}

// The formulas are derived above the reference backwards.
void softmax_backward(const float* dy, const float* y, float* dx, int64_t R, int64_t N) {
  for_each_row(R, N, [=](int64_t r) {
    const float* dy_r = dy + r * N;
    const float* y_r = y + r * N;
    add_softmax_slope(dy_r, y_r, dx + r * N, dot(dy_r, y_r, N), N);
  });
}

void log_softmax_forward(const float* x, float* y, int64_t R, int64_t N) {
  for_each_row(R, N, [=](int64_t r) {
    const float* x_r = x + r * N;
    float* y_r = y + r * N;
    const float shift = shift_of(x_r, N);
    const float sum = exp_shifted(x_r, y_r, shift, N);
    const float log_sum = sum == 0.0F ? 0.0F : std::log(sum);
    set_log_softmax(x_r, y_r, shift, log_sum, N);
  });
}

void log_softmax_backward(const float* dy, const float* y, float* dx, int64_t R, int64_t N) {
  for_each_row(R, N, [=](int64_t r) {
    const float* dy_r = dy + r * N;
    const float* y_r = y + r * N;
    add_log_softmax_slope(dy_r, y_r, dx + r * N, sum_of(dy_r, N), N);
  });
}

}  // namespace minillm::kernels
