#pragma once
// Loops over every element. The chunks are fixed, so are the bits.

#include "core/parallel.h"

#include <cstdint>

namespace minillm::kernels {

/// Elements a task: enough work to pay for waking a thread.
inline constexpr int64_t elements_per_chunk = 8192;

/// y[i] = f(x[i])
template <class T, class F>
void map(const T* x, T* y, int64_t count, F f) {
  parallel_for(count, elements_per_chunk, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      y[i] = f(x[i]);
    }
  });
}

/// dx[i] += dy[i] * slope(x[i], y[i]): the chain rule of y = f(x)
template <class T, class F>
void add_chain(const T* dy, const T* x, const T* y, T* dx, int64_t count, F slope) {
  parallel_for(count, elements_per_chunk, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      dx[i] += dy[i] * slope(x[i], y[i]);
    }
  });
}

}  // namespace minillm::kernels
