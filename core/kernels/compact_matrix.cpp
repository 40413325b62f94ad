#include "core/kernels/compact_matrix.h"

#include "core/half.h"
#include "core/kernels/simd.h"
#include "core/parallel.h"
#include "core/workspace.h"

#include <algorithm>
#include <cmath>

namespace minillm::kernels {

namespace {

constexpr int64_t group = 64;  // a multiple of the lanes
constexpr int64_t bytes_per_task = 1 << 17;

/// Of a row.
int64_t groups_of(int64_t columns) {
  return (columns + group - 1) / group;
}

MINILLM_SIMD void multiply_halves(const uint16_t* M, const float* x, float* y, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    const uint16_t* row = M + r * columns;
    y[r] = sum_in_lanes(columns, [=](int64_t k) { return bfloat16_to_float(row[k]) * x[k]; });
  }
}

/// A row: the groups' sums in lanes, each times its factor.
inline float multiply_codes_of_row(const int8_t* codes, const float* scales, const float* x, int64_t groups) {
  float sum[lanes] = {};
  for (int64_t g = 0; g < groups; ++g) {
    float part[lanes] = {};
    for (int64_t k = 0; k < group; k += lanes) {
      for (int lane = 0; lane < lanes; ++lane) {
        part[lane] += static_cast<float>(codes[g * group + k + lane]) * x[g * group + k + lane];
      }
    }
    for (int lane = 0; lane < lanes; ++lane) {
      sum[lane] += scales[g] * part[lane];
    }
  }
  return sum_lanes(sum);
}

MINILLM_SIMD void multiply_codes(const int8_t* codes, const float* scales, const float* x, float* y, int64_t rows,
                                 int64_t groups) {
  for (int64_t r = 0; r < rows; ++r) {
    y[r] = multiply_codes_of_row(codes + r * groups * group, scales + r * groups, x, groups);
  }
}

}  // namespace

CompactMatrix::CompactMatrix(CompactType type, const float* values, int64_t rows, int64_t columns)
    : rows_(rows), columns_(columns) {
  if (type == CompactType::bf16) {
    halves_.resize(static_cast<size_t>(rows * columns));
    std::transform(values, values + rows * columns, halves_.begin(), float_to_bfloat16);
    return;
  }
  const int64_t groups = groups_of(columns);
  codes_.resize(static_cast<size_t>(rows * groups * group));
  scales_.resize(static_cast<size_t>(rows * groups));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t g = 0; g < groups; ++g) {
      const float* first = values + r * columns + g * group;
      const int64_t count = std::min(group, columns - g * group);
      float largest = 0;
      for (int64_t k = 0; k < count; ++k) {
        largest = std::max(largest, std::abs(first[k]));
      }
      const float scale = largest / 127;
      scales_[static_cast<size_t>(r * groups + g)] = scale;
      int8_t* codes = codes_.data() + (r * groups + g) * group;
      for (int64_t k = 0; k < count && scale > 0; ++k) {
        codes[k] = static_cast<int8_t>(std::clamp(std::nearbyint(first[k] / scale), -127.0F, 127.0F));
      }
    }
  }
}

void CompactMatrix::multiply(const float* x, float* y) const {
  const int64_t row_bytes = std::max<int64_t>(1, static_cast<int64_t>(bytes()) / std::max<int64_t>(1, rows_));
  const int64_t chunk = std::max<int64_t>(8, bytes_per_task / row_bytes);
  if (codes_.empty()) {
    parallel_for(rows_, chunk, [=, this](int64_t begin, int64_t end) {
      multiply_halves(halves_.data() + begin * columns_, x, y + begin, end - begin, columns_);
    });
    return;
  }
  const int64_t groups = groups_of(columns_);
  thread_local Workspace memory;
  float* padded = memory.take(groups * group);
  std::fill(std::copy_n(x, columns_, padded), padded + groups * group, 0.0F);
  parallel_for(rows_, chunk, [=, this](int64_t begin, int64_t end) {
    multiply_codes(codes_.data() + begin * groups * group, scales_.data() + begin * groups, padded, y + begin,
                   end - begin, groups);
  });
}

void CompactMatrix::expand(float* values) const {
  if (codes_.empty()) {
    std::transform(halves_.begin(), halves_.end(), values, bfloat16_to_float);
    return;
  }
  const int64_t groups = groups_of(columns_);
  for (int64_t i = 0; i < rows_ * columns_; ++i) {
    const int64_t at = i / columns_ * groups + i % columns_ / group;
    values[i] = scales_[static_cast<size_t>(at)] *
                static_cast<float>(codes_[static_cast<size_t>(at * group + i % columns_ % group)]);
  }
}

}  // namespace minillm::kernels
