#include "core/kernels/sum_of_squares.h"

#include "core/kernels/simd.h"
#include "core/parallel.h"

#include <algorithm>

namespace minillm::kernels {

namespace {

constexpr int64_t smallest_chunk = 16384;
constexpr int64_t most_chunks = 1024;  // their sums stand on the stack: a training step takes nothing from the heap

MINILLM_SIMD double chunk_sum(const float* x, int64_t count) {
  return sum_in_lanes(count, [=](int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(x[i]); });
}

double chunk_sum(const double* x, int64_t count) {
  return sum_of_squares_reference(x, count);
}

}  // namespace

template <class T>
double sum_of_squares(const T* x, int64_t count) {
  const int64_t chunk = std::max(smallest_chunk, (count + most_chunks - 1) / most_chunks);
  const int64_t chunks = (count + chunk - 1) / chunk;
  double partial[most_chunks];
  double* sums = partial;
  parallel_for(count, chunk,
               [=](int64_t begin, int64_t end) { sums[begin / chunk] = chunk_sum(x + begin, end - begin); });
  double sum = 0;
  for (int64_t i = 0; i < chunks; ++i) {
    sum += sums[i];
  }
  return sum;
}

template double sum_of_squares(const float*, int64_t);
template double sum_of_squares(const double*, int64_t);

}  // namespace minillm::kernels
