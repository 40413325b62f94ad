#include "core/kernels/rows.h"

#include "core/kernels/exp.h"
#include "core/kernels/simd.h"

namespace minillm::kernels {

MINILLM_SIMD float largest_of(const float* x, int64_t count) {
  return largest_in_lanes(x, count);
}

MINILLM_SIMD float sum_of(const float* x, int64_t count) {
  return sum_in_lanes(count, [=](int64_t j) { return x[j]; });
}

MINILLM_SIMD float exp_shifted(const float* x, float* e, float shift, int64_t count) {
  return sum_in_lanes(count, [=](int64_t j) {
    const float e_j = fast_exp(x[j] - shift);
    e[j] = e_j;
    return e_j;
  });
}

MINILLM_SIMD void scale_row(float* x, float factor, int64_t count) {
  for (int64_t j = 0; j < count; ++j) {
    x[j] *= factor;
  }
}

MINILLM_SIMD void add_row(const float* from, float* to, int64_t count) {
  for (int64_t j = 0; j < count; ++j) {
    to[j] += from[j];
  }
}

}  // namespace minillm::kernels
