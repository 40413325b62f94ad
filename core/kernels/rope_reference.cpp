#include "core/kernels/rope.h"

#include <cmath>

namespace minillm::kernels {

int64_t rope_pairs(double fraction, int64_t head_dim) {
  // 0.58 * 100 is 57.99.. in binary: without the margin a decimal fraction that is exact on paper would lose a pair.
  constexpr double margin = 1e-9;
  return static_cast<int64_t>(std::floor(fraction * static_cast<double>(head_dim) / 2 + margin));
}

template <class Real>
void rope_table(Real* cosines, Real* sines, int64_t T, int64_t pairs, int64_t head_dim, double theta) {
  for (int64_t j = 0; j < pairs; ++j) {
    const double exponent = -2.0 * static_cast<double>(j) / static_cast<double>(head_dim);
    const double frequency = std::pow(theta, exponent);
    for (int64_t t = 0; t < T; ++t) {
      const double angle = static_cast<double>(t) * frequency;
      cosines[t * pairs + j] = static_cast<Real>(std::cos(angle));
      sines[t * pairs + j] = static_cast<Real>(std::sin(angle));
    }
  }
}

template <class Real>
void rope_forward_reference(const Real* x, const Real* cosines, const Real* sines, Real* y, int64_t B, int64_t T,
                            int64_t pairs, const QkvLayout& layout) {
  const int64_t width = layout.width();
  for (int64_t row = 0; row < B * T; ++row) {
    const Real* x_row = x + row * width;
    const Real* cosines_t = cosines + row % T * pairs;
    const Real* sines_t = sines + row % T * pairs;
    Real* y_row = y + row * width;
    for (int64_t j = 0; j < width; ++j) {
      y_row[j] = x_row[j];
    }
    for (int64_t i = 0; i < layout.qk_slices(); ++i) {
      const Real* x_slice = x_row + layout.slice_offset(i);
      Real* y_slice = y_row + layout.slice_offset(i);
      for (int64_t j = 0; j < pairs; ++j) {
        const Real first = x_slice[j];
        const Real second = x_slice[j + pairs];
        y_slice[j] = first * cosines_t[j] - second * sines_t[j];
        y_slice[j + pairs] = second * cosines_t[j] + first * sines_t[j];
      }
    }
  }
}

// forward: y1 = x1 cos - x2 sin, y2 = x2 cos + x1 sin, so
//   dx1 =  dy1 cos + dy2 sin
//   dx2 = -dy1 sin + dy2 cos
template <class Real>
void rope_backward_reference(const Real* dy, const Real* cosines, const Real* sines, Real* dx, int64_t B, int64_t T,
                             int64_t pairs, const QkvLayout& layout) {
  const int64_t width = layout.width();
  for (int64_t row = 0; row < B * T; ++row) {
    const Real* dy_row = dy + row * width;
    const Real* cosines_t = cosines + row % T * pairs;
    const Real* sines_t = sines + row % T * pairs;
    Real* dx_row = dx + row * width;
    for (int64_t i = 0; i < layout.qk_slices(); ++i) {
      const Real* dy_slice = dy_row + layout.slice_offset(i);
      Real* dx_slice = dx_row + layout.slice_offset(i);
      for (int64_t j = 0; j < pairs; ++j) {
        const Real first = dy_slice[j];
        const Real second = dy_slice[j + pairs];
        dx_slice[j] += first * cosines_t[j] + second * sines_t[j];
        dx_slice[j + pairs] += second * cosines_t[j] - first * sines_t[j];
      }
      for (int64_t j = 2 * pairs; j < layout.slice_width(i); ++j) {
        dx_slice[j] += dy_slice[j];
      }
    }
    for (int64_t j = layout.v_offset(); j < width; ++j) {
      dx_row[j] += dy_row[j];
    }
  }
}

template void rope_table(float*, float*, int64_t, int64_t, int64_t, double);
template void rope_table(double*, double*, int64_t, int64_t, int64_t, double);
template void rope_forward_reference(const float*, const float*, const float*, float*, int64_t, int64_t, int64_t,
                                     const QkvLayout&);
template void rope_forward_reference(const double*, const double*, const double*, double*, int64_t, int64_t, int64_t,
                                     const QkvLayout&);
template void rope_backward_reference(const float*, const float*, const float*, float*, int64_t, int64_t, int64_t,
                                      const QkvLayout&);
template void rope_backward_reference(const double*, const double*, const double*, double*, int64_t, int64_t, int64_t,
                                      const QkvLayout&);

}  // namespace minillm::kernels
