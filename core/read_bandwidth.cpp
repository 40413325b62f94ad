#include "core/read_bandwidth.h"

#include "core/kernels/simd.h"
#include "core/parallel.h"
#include "core/tensor.h"

#include <algorithm>
#include <chrono>

namespace minillm {

namespace {

constexpr int probes = 7;
constexpr double probe_seconds = 0.03;
constexpr int64_t parts_per_thread = 4;

MINILLM_SIMD float sum_of_part(const float* x, int64_t count) {
  // Four places at a time, each with a sum of its own: processors fetch ahead for several at once, and one sum alone
  // would wait for its additions, not for memory.
  float partial[4 * kernels::lanes] = {};
  const int64_t quarter = count / 4;
  for (int64_t i = 0; i + kernels::lanes <= quarter; i += kernels::lanes) {
    for (int place = 0; place < 4; ++place) {
      for (int lane = 0; lane < kernels::lanes; ++lane) {
        partial[place * kernels::lanes + lane] += x[place * quarter + i + lane];
      }
    }
  }
  float sum = 0;
  for (const float value : partial) {
    sum += value;
  }
  return sum;
}

}  // namespace

double read_gigabytes_per_s(size_t bytes) {
  const auto count = static_cast<int64_t>(std::max<size_t>(bytes / sizeof(float), 1));
  const Buffer memory(Shape{count}, DType::float32);
  const float* x = memory.tensor().as<float>();
  std::fill_n(memory.tensor().as<float>(), count, 1.0F);
  const int64_t chunk = std::max<int64_t>(1, count / (parts_per_thread * num_threads()));
  double best = 0;
  for (int probe = 0; probe < probes; ++probe) {
    const auto begin = std::chrono::steady_clock::now();
    std::chrono::duration<double> seconds{0};
    int64_t passes = 0;
    while (seconds.count() < probe_seconds) {
      parallel_for(count, chunk, [=](int64_t first, int64_t end) {
        volatile float result = sum_of_part(x + first, end - first);
        static_cast<void>(result);
      });
      ++passes;
      seconds = std::chrono::steady_clock::now() - begin;
    }
    const double read = static_cast<double>(count) * sizeof(float) * static_cast<double>(passes);
    best = std::max(best, read / seconds.count() / 1e9);
  }
  return best;
}

}  // namespace minillm
