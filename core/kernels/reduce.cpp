#include "core/kernels/reduce.h"

#include "core/kernels/simd.h"
#include "core/parallel.h"

#include <algorithm>
#include <cstring>

namespace minillm::kernels {

namespace {

constexpr int64_t rows_per_chunk = 64;
constexpr int64_t columns_per_stripe = 64;

}  // namespace

template <class T>
void copy_row_to_all(const T* row, T* Y, int64_t R, int64_t N) {
  parallel_for(R, rows_per_chunk, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      std::memcpy(Y + r * N, row, sizeof(T) * static_cast<size_t>(N));
    }
  });
}

template <class T>
void add_rows_to_one(const T* Y, T* row, int64_t R, int64_t N) {
  parallel_for(N, columns_per_stripe, [=](int64_t begin, int64_t end) {
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
  return sum_in_lanes(count, [=](int64_t i) { return static_cast<double>(x[i]); });
}

template void copy_row_to_all(const float*, float*, int64_t, int64_t);
template void copy_row_to_all(const double*, double*, int64_t, int64_t);
template void add_rows_to_one(const float*, float*, int64_t, int64_t);
template void add_rows_to_one(const double*, double*, int64_t, int64_t);
template double sum_values(const float*, int64_t);
template double sum_values(const double*, int64_t);

}  // namespace minillm::kernels
