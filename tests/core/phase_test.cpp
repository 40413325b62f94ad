#include "core/phase.h"

#include "core/error.h"
#include "core/fma_peak.h"
#include "core/parallel.h"

#include <doctest/doctest.h>

#include <chrono>
#include <numeric>
#include <thread>

using namespace minillm;

namespace {

void pass_time(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

double of(const std::array<double, phase_count>& seconds, Phase phase) {
  return seconds[static_cast<size_t>(phase)];
}

}  // namespace

TEST_CASE("a clock of phases: nested ones are counted once, and all of them sum to the whole") {
  const auto begin = std::chrono::steady_clock::now();
  PhaseClock clock;
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
  PhaseClock::move_to(Phase::norms);
  pass_time(5);
  const std::array<double, phase_count> seconds = clock.take();
  const double whole = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  CHECK(of(seconds, Phase::other) >= 0.005);
  CHECK(of(seconds, Phase::loss) >= 0.020);
  CHECK(of(seconds, Phase::gemm_dw) >= 0.020);
  CHECK(of(seconds, Phase::norms) >= 0.005);
  CHECK(of(seconds, Phase::attention) == 0);
  CHECK(std::accumulate(seconds.begin(), seconds.end(), 0.0) == doctest::Approx(whole).epsilon(0.02));
  CHECK(of(clock.take(), Phase::loss) == 0);
}

TEST_CASE("without a clock phases count nothing, and a second clock is refused") {
  { const InPhase phase(Phase::loss); }
  const PhaseClock clock;
  CHECK_THROWS_AS(PhaseClock(), Error);
}

TEST_CASE("the peak of this machine is a plausible number") {
  const double peak = fma_peak_gflops();
#if defined(__x86_64__)
  CHECK(peak > 1);
  CHECK(peak < 1000.0 * num_threads());
#else
  CHECK(peak == 0);
#endif
}
