#pragma once
// What the kernel benchmarks share: the sizes of the reference model's step, and buffers with numbers in them.

#include "core/rng.h"
#include "core/tensor.h"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

namespace minillm::bench {

/// configs/baseline.toml at B4 T256.
inline constexpr int64_t B = 4;
inline constexpr int64_t T = 256;
inline constexpr int64_t R = B * T;
inline constexpr int64_t d = 256;
inline constexpr int64_t heads = 8;
inline constexpr int64_t f = 688;
inline constexpr int64_t V = 2048;

/// `count` floats in [-1, 1): kernels must not meet denormals or zeros, which have a speed of their own.
inline Buffer uniform(int64_t count) {
  Buffer buffer({count}, DType::float32);
  RandomStream random(random_key(1, "bench"));
  float* values = buffer.tensor().as<float>();
  for (int64_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(2 * random.uniform() - 1);
  }
  return buffer;
}

inline float* data(const Buffer& buffer) {
  return buffer.tensor().as<float>();
}

/// Operations a second, printed with a prefix.
inline void count_flops(benchmark::State& state, double flops) {
  state.counters["FLOP/s"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

/// Bytes a second of a kernel that is bound by memory: floats read and written, each counted once.
inline void count_floats(benchmark::State& state, int64_t floats) {
  state.counters["bytes/s"] =
      benchmark::Counter(static_cast<double>(floats) * sizeof(float), benchmark::Counter::kIsIterationInvariantRate);
}

/// Tells the compiler that `buffer` was read.
inline void keep(const Buffer& buffer) {
  benchmark::DoNotOptimize(buffer.tensor().data);
  benchmark::ClobberMemory();
}

}  // namespace minillm::bench
