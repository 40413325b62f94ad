#include "core/kernels/cross_entropy.h"

#include "core/kernels/exp.h"
#include "core/kernels/rows.h"
#include "core/kernels/simd.h"
#include "core/parallel.h"

#include <cmath>
#include <cstring>

namespace minillm::kernels {

namespace {

constexpr int64_t rows_per_chunk = 8;

MINILLM_SIMD float sum_exp_shifted(const float* x, float shift, int64_t V) {
  return sum_in_lanes(V, [=](int64_t j) { return fast_exp(x[j] - shift); });
}

MINILLM_SIMD void set_scaled_exp(const float* x, float* dx, float shift, float factor, int64_t V) {
  for (int64_t j = 0; j < V; ++j) {
    dx[j] = fast_exp(x[j] - shift) * factor;
  }
}

MINILLM_SIMD void add_scaled_exp(const float* x, float* dx, float shift, float factor, int64_t V) {
  for (int64_t j = 0; j < V; ++j) {
    dx[j] += fast_exp(x[j] - shift) * factor;
  }
}

}  // namespace

double cross_entropy_forward(const float* x, const int32_t* targets, float* row_max, float* row_sum, double* row_loss,
                             int64_t R, int64_t V) {
  parallel_for(R, rows_per_chunk, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      row_loss[r] = 0;
      if (targets[r] >= 0) {
        const float* x_r = x + r * V;
        row_max[r] = largest_of(x_r, V);
        row_sum[r] = sum_exp_shifted(x_r, row_max[r], V);
        const double x_target = static_cast<double>(x_r[targets[r]]);
        row_loss[r] = static_cast<double>(row_max[r]) - x_target + std::log(static_cast<double>(row_sum[r]));
      }
    }
  });
  double loss = 0;
  for (int64_t r = 0; r < R; ++r) {
    loss += row_loss[r];
  }
  return loss;
}

void cross_entropy_backward(const float* x, const int32_t* targets, const float* row_max, const float* row_sum,
                            float* dx, int64_t R, int64_t V, double unit, bool overwrite) {
  const float dloss = static_cast<float>(unit);
  parallel_for(R, rows_per_chunk, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* dx_r = dx + r * V;
      if (targets[r] < 0) {
        if (overwrite) {
          std::memset(dx_r, 0, sizeof(float) * static_cast<size_t>(V));
        }
        continue;
      }
      if (overwrite) {
        set_scaled_exp(x + r * V, dx_r, row_max[r], dloss / row_sum[r], V);
      } else {
        add_scaled_exp(x + r * V, dx_r, row_max[r], dloss / row_sum[r], V);
      }
      dx_r[targets[r]] -= dloss;
    }
  });
}

}  // namespace minillm::kernels
