#include "core/kernels/dropout.h"

namespace minillm::kernels {

namespace {

bool kept(RandomKey key, int64_t i, uint32_t threshold) {
  const uint64_t block = static_cast<uint64_t>(i / 4);
  const size_t word = static_cast<size_t>(i % 4);
  return philox(key, block)[word] >= threshold;
}

}  // namespace

template <class T>
void dropout_forward_reference(const T* x, T* y, int64_t N, double p, RandomKey key) {
  const uint32_t threshold = dropout_threshold(p);
  const T factor = static_cast<T>(1.0 / (1.0 - p));
  for (int64_t i = 0; i < N; ++i) {
    y[i] = kept(key, i, threshold) ? x[i] * factor : T{0};
  }
}

template <class T>
void dropout_backward_reference(const T* dy, T* dx, int64_t N, double p, RandomKey key) {
  const uint32_t threshold = dropout_threshold(p);
  const T factor = static_cast<T>(1.0 / (1.0 - p));
  for (int64_t i = 0; i < N; ++i) {
    dx[i] += kept(key, i, threshold) ? dy[i] * factor : T{0};
  }
}

template void dropout_forward_reference(const float*, float*, int64_t, double, RandomKey);
template void dropout_forward_reference(const double*, double*, int64_t, double, RandomKey);
template void dropout_backward_reference(const float*, float*, int64_t, double, RandomKey);
template void dropout_backward_reference(const double*, double*, int64_t, double, RandomKey);

}  // namespace minillm::kernels
