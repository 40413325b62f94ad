#include "core/kernels/past_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace minillm::kernels {

namespace {

/// One query of one head over the first `seen` keys.
template <class Real>
void attend_to_past(const Real* q, const Real* keys, const Real* values, Real* out, int64_t seen,
                    const PastShape& shape) {
  const Real scale = static_cast<Real>(shape.scale);
  const auto score = [&](int64_t u) {
    return scale * std::inner_product(q, q + shape.key_width, keys + u * shape.key_row, Real{0});
  };
  Real largest = -std::numeric_limits<Real>::infinity();
  for (int64_t u = 0; u < seen; ++u) {
    largest = std::max(largest, score(u));
  }
  std::fill_n(out, shape.value_width, Real{0});
  Real sum = 0;
  for (int64_t u = 0; u < seen; ++u) {
    const Real e = std::exp(score(u) - largest);
    sum += e;
    for (int64_t j = 0; j < shape.value_width; ++j) {
      out[j] += e * values[u * shape.value_row + j];
    }
  }
  for (int64_t j = 0; j < shape.value_width; ++j) {
    out[j] /= sum;
  }
}

}  // namespace

template <class Real>
void past_attention_reference(const Real* q, const Real* keys, const Real* values, Real* out, const PastShape& shape) {
  for (int64_t t = 0; t < shape.count; ++t) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      const int64_t g = h / (shape.heads / shape.key_heads);
      const int64_t row = t * shape.heads + h;
      attend_to_past(q + row * shape.key_width, keys + g * shape.capacity * shape.key_row,
                     values + g * shape.capacity * shape.value_row, out + row * shape.value_width, shape.past + t + 1,
                     shape);
    }
  }
}

template void past_attention_reference(const float*, const float*, const float*, float*, const PastShape&);
template void past_attention_reference(const double*, const double*, const double*, double*, const PastShape&);

}  // namespace minillm::kernels
