#include "core/kernels/reduce.h"

#include "core/kernels/simd.h"
#include "core/parallel.h"

#include <algorithm>
#include <cstring>

namespace minillm::kernels {

template <class T>
void copy_row_to_all(const T* row, T* Y, int64_t R, int64_t N) {
  parallel_for(R, 64, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      std::memcpy(Y + r * N, row, sizeof(T) * static_cast<size_t>(N));
    }
  });
}

// Each task owns a stripe of columns and adds the rows in order: no partial sums to combine.
template <class T>
void add_rows_to_one(const T* Y, T* row, int64_t R, int64_t N) {
  parallel_for(N, 64, [=](int64_t begin, int64_t end) {
    for (int64_t r = 0; r < R; ++r) {
      const T* Y_r = Y + r * N;
      for (int64_t n = begin; n < end; ++n) {
        row[n] += Y_r[n];
      }
    }
  });
}

template <class T>
double sum_values(const T* x, int64_t count) {
  double partial[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (int lane = 0; lane < lanes; ++lane) {
      partial[lane] += static_cast<double>(x[i + lane]);
    }
  }
  for (; i < count; ++i) {
    partial[i % lanes] += static_cast<double>(x[i]);
  }
  return sum_lanes(partial);
}

template void copy_row_to_all(const float*, float*, int64_t, int64_t);
template void copy_row_to_all(const double*, double*, int64_t, int64_t);
template void add_rows_to_one(const float*, float*, int64_t, int64_t);
template void add_rows_to_one(const double*, double*, int64_t, int64_t);
template double sum_values(const float*, int64_t);
template double sum_values(const double*, int64_t);

}  // namespace minillm::kernels
