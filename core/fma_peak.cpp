#include "core/fma_peak.h"

#include "core/kernels/instruction_set.h"
#include "core/kernels/simd.h"
#include "core/kernels/vectors.h"
#include "core/parallel.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

namespace minillm {

#if defined(__x86_64__)

namespace {

constexpr int repetitions = 7;
constexpr int chains = 12;           // two units of four cycles' latency need eight; AVX2 has registers for fourteen
constexpr int64_t rounds = 500'000;  // about 1 ms, and hundreds in a build whose loops keep nothing in registers
constexpr double least_seconds = 0.03;

// The sums are kept alive by what is returned, and start from a value that the compiler does not know. Twice, because a
// template cannot carry the attribute of its argument.
MINILLM_AVX512 float fma_chains_avx512(int64_t n, const float* start) {
  using Isa = kernels::Avx512;
  const Isa::Vector factor = Isa::broadcast(start);
  Isa::Vector sum[chains];
  for (Isa::Vector& s : sum) {
    s = factor;
  }
  for (int64_t i = 0; i < n; ++i) {
    for (Isa::Vector& s : sum) {
      s = Isa::fma(s, factor, factor);
    }
  }
  for (int c = 1; c < chains; ++c) {
    sum[0] = Isa::add(sum[0], sum[c]);
  }
  return sum[0][0];
}

MINILLM_AVX2 float fma_chains_avx2(int64_t n, const float* start) {
  using Isa = kernels::Avx2;
  const Isa::Vector factor = Isa::broadcast(start);
  Isa::Vector sum[chains];
  for (Isa::Vector& s : sum) {
    s = factor;
  }
  for (int64_t i = 0; i < n; ++i) {
    for (Isa::Vector& s : sum) {
      s = Isa::fma(s, factor, factor);
    }
  }
  for (int c = 1; c < chains; ++c) {
    sum[0] = Isa::add(sum[0], sum[c]);
  }
  return sum[0][0];
}

struct Version {
  float (*run)(int64_t n, const float* start);
  int lanes;
};

Version widest_version() {
  switch (kernels::widest_instruction_set()) {
    case kernels::InstructionSet::avx512: return {fma_chains_avx512, 16};
    case kernels::InstructionSet::avx2: return {fma_chains_avx2, 8};
    case kernels::InstructionSet::baseline: break;
  }
  return {nullptr, 0};
}

/// GFLOP/s of the calling thread.
double rate(const Version& version) {
  volatile float unknown = 0.5F;
  const float start = unknown;
  const auto begin = std::chrono::steady_clock::now();
  std::chrono::duration<double> seconds{0};
  int64_t done = 0;
  while (seconds.count() < least_seconds) {
    volatile float result = version.run(rounds, &start);
    static_cast<void>(result);
    done += rounds;
    seconds = std::chrono::steady_clock::now() - begin;
  }
  return 2.0 * chains * version.lanes * static_cast<double>(done) / seconds.count() / 1e9;
}

}  // namespace

double fma_peak_gflops() {
  const Version version = widest_version();
  if (version.run == nullptr) {
    return 0;
  }
  double best = 0;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    std::vector<double> rates(static_cast<size_t>(num_threads()));
#ifdef _OPENMP
#pragma omp parallel num_threads(num_threads())
    {
#pragma omp barrier
      rates[static_cast<size_t>(omp_get_thread_num())] = rate(version);
    }
#else
    rates.front() = rate(version);
#endif
    best = std::max(best, std::accumulate(rates.begin(), rates.end(), 0.0));
  }
  return best;
}

#else

double fma_peak_gflops() {
  return 0;
}

#endif

}  // namespace minillm
