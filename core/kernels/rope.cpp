#include "core/kernels/rope.h"

#include "core/kernels/simd.h"
#include "core/parallel.h"

#include <cstring>

namespace minillm::kernels {

namespace {

constexpr int64_t rows_per_chunk = 16;

// One token's row, turned by direction * angle; direction is 1 or -1. The products and sums are those of the reference,
// so are the bits.
MINILLM_SIMD void rotate_row(const float* x, const float* cosines, const float* sines, float direction, float* y,
                             int64_t pairs, const QkvLayout& layout) {
  for (int64_t i = 0; i < layout.qk_slices(); ++i) {
    const float* x_slice = x + layout.slice_offset(i);
    float* y_slice = y + layout.slice_offset(i);
    for (int64_t j = 0; j < pairs; ++j) {
      const float first = x_slice[j];
      const float second = x_slice[j + pairs];
      const float sine = direction * sines[j];
      y_slice[j] = first * cosines[j] - second * sine;
      y_slice[j + pairs] = second * cosines[j] + first * sine;
    }
  }
}

MINILLM_SIMD void add_rotated_back(const float* dy, const float* cosines, const float* sines, float* dx, int64_t pairs,
                                   const QkvLayout& layout) {
  for (int64_t i = 0; i < layout.qk_slices(); ++i) {
    const float* dy_slice = dy + layout.slice_offset(i);
    float* dx_slice = dx + layout.slice_offset(i);
    for (int64_t j = 0; j < pairs; ++j) {
      const float first = dy_slice[j];
      const float second = dy_slice[j + pairs];
      dx_slice[j] += first * cosines[j] + second * sines[j];
      dx_slice[j + pairs] += second * cosines[j] - first * sines[j];
    }
    for (int64_t j = 2 * pairs; j < layout.slice_width(i); ++j) {
      dx_slice[j] += dy_slice[j];
    }
  }
  for (int64_t j = layout.v_offset(); j < layout.width(); ++j) {
    dx[j] += dy[j];
  }
}

void rotate_rows(const float* x, const float* cosines, const float* sines, float direction, float* y, int64_t B,
                 int64_t T, int64_t pairs, const QkvLayout& layout) {
  const int64_t width = layout.width();
  parallel_for(B * T, rows_per_chunk, [=, &layout](int64_t begin, int64_t end) {
    std::memcpy(y + begin * width, x + begin * width, sizeof(float) * static_cast<size_t>((end - begin) * width));
    for (int64_t row = begin; row < end; ++row) {
      const int64_t t = row % T;
      rotate_row(x + row * width, cosines + t * pairs, sines + t * pairs, direction, y + row * width, pairs, layout);
    }
  });
}

}  // namespace

void rope_forward(const float* x, const float* cosines, const float* sines, float* y, int64_t B, int64_t T,
                  int64_t pairs, const QkvLayout& layout) {
  rotate_rows(x, cosines, sines, 1.0F, y, B, T, pairs, layout);
}

void rope_backward(const float* dy, const float* cosines, const float* sines, float* dx, int64_t B, int64_t T,
                   int64_t pairs, const QkvLayout& layout, bool fresh) {
  if (fresh) {
    rotate_rows(dy, cosines, sines, -1.0F, dx, B, T, pairs, layout);
    return;
  }
  const int64_t width = layout.width();
  parallel_for(B * T, rows_per_chunk, [=, &layout](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t t = row % T;
      add_rotated_back(dy + row * width, cosines + t * pairs, sines + t * pairs, dx + row * width, pairs, layout);
    }
  });
}

}  // namespace minillm::kernels
