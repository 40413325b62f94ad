#pragma once
// Dropout (Srivastava et al. 2014), in the inverted form: kept elements are scaled in training, nothing is done later.
//
//   y[i] = keep[i] * x[i] / (1 - p)         keep[i] = word[i] >= p * 2^32
//
// word[i] is word i % 4 of Philox block i / 4 under `key`: a pure function of (key, i), so the mask is the same in backward
// without being saved, and for any number of threads. N elements; 0 <= p < 1. Backward adds to dx.

#include "core/rng.h"

#include <cstdint>

namespace minillm::kernels {

template <class T>
void dropout_forward_reference(const T* x, T* y, int64_t N, double p, RandomKey key);

template <class T>
void dropout_backward_reference(const T* dy, T* dx, int64_t N, double p, RandomKey key);

void dropout_forward(const float* x, float* y, int64_t N, double p, RandomKey key);
void dropout_backward(const float* dy, float* dx, int64_t N, double p, RandomKey key);

/// The smallest word that is kept.
inline uint32_t dropout_threshold(double p) {
  return static_cast<uint32_t>(p * 0x1p32);
}

}  // namespace minillm::kernels
