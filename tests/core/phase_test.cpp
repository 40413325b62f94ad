#include "core/phase.h"

#include "core/error.h"
#include "core/fma_peak.h"
#include "core/kernels/gemm.h"
#include "core/kernels/instruction_set.h"
#include "core/parallel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

using namespace minillm;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

void pass_time(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

double of(const std::array<double, phase_count>& seconds, Phase phase) {
  return seconds[static_cast<size_t>(phase)];
}

/// Whether fma_peak_gflops measures this processor.
bool has_fma_peak() {
  return kernels::widest_instruction_set() != kernels::InstructionSet::baseline;
}

}  // namespace

TEST_CASE("a clock of phases: nested ones are counted once, and all of them sum to the whole") {
  const Clock::time_point before = Clock::now();
  PhaseClock clock;
  const Clock::time_point begin = Clock::now();
  pass_time(5);
  {
    const InPhase outer(Phase::loss);
    pass_time(10);
    {
      const InPhase inner(Phase::gemm_dw);
      pass_time(20);
    }
    pass_time(10);
  }
  CHECK(PhaseClock::move_to(Phase::norms) == Phase::other);
  pass_time(5);
  const Clock::time_point end = Clock::now();
  const std::array<double, phase_count> seconds = clock.take();
  const Clock::time_point after = Clock::now();
  CHECK(of(seconds, Phase::other) >= 0.005);
  CHECK(of(seconds, Phase::loss) >= 0.020);
  CHECK(of(seconds, Phase::gemm_dw) >= 0.020);
  CHECK(of(seconds, Phase::norms) >= 0.005);
  CHECK(of(seconds, Phase::attention) == 0);
  constexpr double rounding = 1e-9;
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  CHECK(sum >= seconds_between(begin, end) - rounding);
  CHECK(sum <= seconds_between(before, after) + rounding);
  CHECK(PhaseClock::move_to(Phase::other) == Phase::norms);
  CHECK(of(clock.take(), Phase::loss) == 0);
}

TEST_CASE("without a clock phases count nothing, and a second clock is refused") {
  CHECK_FALSE(PhaseClock::is_running());
  {
    const InPhase phase(Phase::loss);
    CHECK(PhaseClock::move_to(Phase::attention) == Phase::attention);
    pass_time(5);
  }
  PhaseClock clock;
  CHECK(PhaseClock::is_running());
  CHECK_THROWS_AS(PhaseClock(), Error);
  pass_time(1);
  const std::array<double, phase_count> seconds = clock.take();
  CHECK(of(seconds, Phase::loss) == 0);
  CHECK(of(seconds, Phase::attention) == 0);
  CHECK(of(seconds, Phase::other) >= 0.001);
}

TEST_CASE("every phase has a name of its own") {
  for (size_t i = 0; i < phase_count; ++i) {
    CHECK_FALSE(name_of(static_cast<Phase>(i)).empty());
    for (size_t j = 0; j < i; ++j) {
      CHECK(name_of(static_cast<Phase>(i)) != name_of(static_cast<Phase>(j)));
    }
  }
}

#if !defined(MINILLM_SANITIZED) && !defined(MINILLM_NO_SIMD) && defined(NDEBUG)

/// GFLOP/s of products of 768 x 768 for as long as a probe of the peak takes, so that what else runs slows both alike.
double gemm_gflops() {
  constexpr int64_t n = 768;
  static const std::vector<float> a(n * n, 0.5F);
  static std::vector<float> c(n * n);
  const Clock::time_point begin = Clock::now();
  int products = 0;
  double seconds = 0;
  while (seconds < 0.03) {
    kernels::gemm({a.data(), n, false}, {a.data(), n, false}, {c.data(), n}, n, n, n, 0.0);
    ++products;
    seconds = seconds_between(begin, Clock::now());
  }
  return 2.0 * products * n * n * n / seconds / 1e9;
}

TEST_CASE("the peak of this machine is above what a matrix product reaches, and not far above") {
  if (!has_fma_peak()) {
    CHECK(fma_peak_gflops() == 0);
    return;
  }
  const int threads = num_threads();
  set_num_threads(1);
  double peak = 0;
  double gemm = 0;
  // Both only grow towards what the machine can do: a loaded one needs more rounds.
  for (int round = 0; round < 20 && !(gemm > 0.4 * peak && gemm < 1.1 * peak); ++round) {
    for (int repetition = 0; repetition < 7; ++repetition) {
      gemm = std::max(gemm, gemm_gflops());
    }
    peak = std::max(peak, fma_peak_gflops());
  }
  set_num_threads(threads);
  CAPTURE(peak);
  CHECK(gemm > 0.4 * peak);
  CHECK(gemm < 1.1 * peak);
}

#else

TEST_CASE("the peak of this machine is measured where it can be") {
  CHECK((fma_peak_gflops() > 0) == has_fma_peak());
}

#endif
