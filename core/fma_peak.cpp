#include "core/fma_peak.h"

#include "core/parallel.h"

#include <algorithm>
#include <chrono>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace minillm {

#if defined(__x86_64__)

namespace {

constexpr int repetitions = 7;
constexpr int chains = 12;  // two units of four cycles' latency need eight; AVX2 has registers for fourteen
constexpr int64_t rounds = 4'000'000;

// The sums are kept alive by what follows the loop, and start from values that the compiler does not know.
__attribute__((target("avx512f"))) float fma_chains_avx512(int64_t n, float start) {
  const __m512 factor = _mm512_set1_ps(start);
  __m512 sum[chains];
  for (__m512& s : sum) {
    s = factor;
  }
  for (int64_t i = 0; i < n; ++i) {
    for (__m512& s : sum) {
      s = _mm512_fmadd_ps(s, factor, factor);
    }
  }
  __m512 total = sum[0];
  for (int c = 1; c < chains; ++c) {
    total = _mm512_add_ps(total, sum[c]);
  }
  return total[0];
}

__attribute__((target("avx2,fma"))) float fma_chains_avx2(int64_t n, float start) {
  const __m256 factor = _mm256_set1_ps(start);
  __m256 sum[chains];
  for (__m256& s : sum) {
    s = factor;
  }
  for (int64_t i = 0; i < n; ++i) {
    for (__m256& s : sum) {
      s = _mm256_fmadd_ps(s, factor, factor);
    }
  }
  __m256 total = sum[0];
  for (int c = 1; c < chains; ++c) {
    total = _mm256_add_ps(total, sum[c]);
  }
  return total[0];
}

struct Version {
  float (*run)(int64_t n, float start);
  int lanes;
};

Version widest_version() {
  if (__builtin_cpu_supports("avx512f")) {
    return {fma_chains_avx512, 16};
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {fma_chains_avx2, 8};
  }
  return {nullptr, 0};
}

/// GFLOP/s of the calling thread.
double rate(const Version& version) {
  volatile float start = 0.5F;
  volatile float result = 0;
  const auto begin = std::chrono::steady_clock::now();
  result = version.run(rounds, start);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  static_cast<void>(result);
  return 2.0 * chains * version.lanes * static_cast<double>(rounds) / seconds.count() / 1e9;
}

}  // namespace

double fma_peak_gflops() {
  const Version version = widest_version();
  if (version.run == nullptr) {
    return 0;
  }
  double best = 0;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    double sum = 0;
#ifdef _OPENMP
#pragma omp parallel num_threads(num_threads()) reduction(+ : sum)
    {
#pragma omp barrier
      sum += rate(version);
    }
#else
    sum = rate(version);
#endif
    best = std::max(best, sum);
  }
  return best;
}

#else

double fma_peak_gflops() {
  return 0;
}

#endif

}  // namespace minillm
