#include "core/kernels/linear_cross_entropy.h"

#include "core/kernels/gemm.h"
#include "core/kernels/rows.h"
#include "core/kernels/simd.h"
#include "core/parallel.h"
#include "core/phase.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace minillm::kernels {

namespace {

constexpr int64_t rows_per_task = 8;
constexpr int64_t elements_per_task = 16384;

// Rows of logits at a time, in whole tiles of gemm.h: about 4 MB of them, which a last-level cache holds between the
// three products, where V is from 1,024 to 8,192. A small V has at most 1,024 rows; a large one takes a tile of rows,
// more than 4 MB, so that G^T H adds to dW few times.
int64_t rows_per_chunk(int64_t V) {
  constexpr int64_t tile = 128;
  constexpr int64_t logits = int64_t{1} << 20;
  return std::clamp(logits / V / tile * tile, tile, 8 * tile);
}

// Between rows of logits: never a power of two, which would map a column of a tile to one cache set.
int64_t leading_dimension(int64_t V) {
  return (V + lanes - 1) / lanes * lanes + lanes;
}

MINILLM_SIMD void set_scaled(const float* from, float* to, float factor, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = factor * from[i];
  }
}

MINILLM_SIMD void add_scaled(const float* from, float* to, float factor, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] += factor * from[i];
  }
}

// One row: returns its loss; with_gradient leaves exp(x - max) / sum * unit - unit [j = target] in x.
double loss_row(float* x, int32_t target, int64_t V, float unit, bool with_gradient) {
  if (target < 0) {
    std::memset(x, 0, sizeof(float) * static_cast<size_t>(V));
    return 0;
  }
  const double x_target = static_cast<double>(x[target]);
  const float max = largest_of(x, V);
  const float sum = exp_shifted(x, x, max, V);
  if (with_gradient) {
    scale_row(x, unit / sum, V);
    x[target] -= unit;
  }
  return static_cast<double>(max) - x_target + std::log(static_cast<double>(sum));
}

}  // namespace

int64_t linear_cross_entropy_scratch(int64_t R, int64_t V) {
  return std::min(R, rows_per_chunk(V)) * leading_dimension(V);
}

double linear_cross_entropy_forward(const float* hidden, const float* weight, const int32_t* targets, float* dhidden,
                                    float* dweight, float* logits, double* row_loss, int64_t R, int64_t d, int64_t V,
                                    int64_t counted) {
  const float unit = counted > 0 ? static_cast<float>(1.0 / static_cast<double>(counted)) : 0.0F;
  const bool with_gradient = dhidden != nullptr || dweight != nullptr;
  const int64_t chunk = rows_per_chunk(V);
  const int64_t ld = leading_dimension(V);
  if (dweight != nullptr && R == 0) {
    std::memset(dweight, 0, sizeof(float) * static_cast<size_t>(V * d));
  }
  for (int64_t first = 0; first < R; first += chunk) {
    const int64_t rows = std::min(chunk, R - first);
    const Operand<float> H = {hidden + first * d, d, false};
    {
      const InPhase part(Phase::gemm_forward);
      gemm(H, {weight, d, true}, {logits, ld}, rows, V, d, 0.0);
    }
    parallel_for(rows, rows_per_task, [=](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        row_loss[first + r] = loss_row(logits + r * ld, targets[first + r], V, unit, with_gradient);
      }
    });
    if (dhidden != nullptr) {
      const InPhase part(Phase::gemm_dx);
      gemm({logits, ld, false}, {weight, d, false}, {dhidden + first * d, d}, rows, d, V, 0.0);
    }
    if (dweight != nullptr) {
      const InPhase part(Phase::gemm_dw);
      gemm({logits, ld, true}, H, {dweight, d}, V, d, rows, first == 0 ? 0.0 : 1.0);
    }
  }
  double loss = 0;
  for (int64_t r = 0; r < R; ++r) {
    loss += row_loss[r];
  }
  return loss;
}

void put_scaled(const float* from, float* to, float factor, int64_t count, bool overwrite) {
  parallel_for(count, elements_per_task, [=](int64_t begin, int64_t end) {
    if (overwrite) {
      set_scaled(from + begin, to + begin, factor, end - begin);
    } else {
      add_scaled(from + begin, to + begin, factor, end - begin);
    }
  });
}

}  // namespace minillm::kernels
