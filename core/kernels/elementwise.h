#pragma once
// Loops over every element. The chunks are fixed, so are the bits.

#include "core/parallel.h"

#include <cstdint>

namespace minillm::kernels {

/// Elements a task: enough work to pay for waking a thread.
inline constexpr int64_t elements_per_chunk = 8192;

/// parallel_for that stays on the calling thread when there is one chunk: small tensors are many in composed models.
/// Not for bodies that call oneDNN.
template <class Body>
void for_chunks(int64_t count, int64_t chunk, Body body) {
  if (count > chunk) {
    parallel_for(count, chunk, body);
  } else if (count > 0) {
    body(int64_t{0}, count);
  }
}

/// y[i] = f(x[i])
template <class T, class F>
void map(const T* x, T* y, int64_t count, F f) {
  for_chunks(count, elements_per_chunk, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      y[i] = f(x[i]);
    }
  });
}

/// dx[i] += dy[i] * slope(x[i], y[i]): the chain rule of y = f(x)
template <class T, class F>
void add_chain(const T* dy, const T* x, const T* y, T* dx, int64_t count, F slope) {
  for_chunks(count, elements_per_chunk, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      dx[i] += dy[i] * slope(x[i], y[i]);
    }
  });
}

}  // namespace minillm::kernels
