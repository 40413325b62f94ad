#include "cli/bench_text.h"

#include "tests/support/message_of.h"

#include <doctest/doctest.h>

using namespace minillm;
using namespace minillm::cli;
using namespace minillm::test;

namespace {

/// A step of 80 ms: 50 of forward products at 100 GFLOP/s, 10 of norms, 20 of the rest.
BenchResult result_with_peak(double gflops) {
  BenchResult result;
  result.parameters = 3688704;
  result.tokens_per_step = 1024;
  result.step_seconds = 0.08;
  result.phases[static_cast<size_t>(Phase::gemm_forward)] = 0.05;
  result.phases[static_cast<size_t>(Phase::norms)] = 0.01;
  result.phases[static_cast<size_t>(Phase::other)] = 0.02;
  result.phase_flops[static_cast<size_t>(Phase::gemm_forward)] = 5e9;
  result.flops = 8e9;
  result.fma_peak_gflops = gflops;
  result.memory_formula_bytes = 1e6;
  return result;
}

}  // namespace

TEST_CASE("a benchmark's table: shares of the step and of the peak") {
  const std::string text = bench_text(result_with_peak(200), 0);
  CHECK_CONTAINS(text, "gemm_forward  50.00   62.5 %    100.0   50.0 %\n");
  CHECK_CONTAINS(text, "norms         10.00   12.5 %\n");
  CHECK_CONTAINS(text, "step          80.00  100.0 %    100.0   50.0 %\n");
  CHECK_CONTAINS(text, "FMA peak 200.0 GFLOP/s (+0.0 %");
  const std::string json = bench_json(result_with_peak(200), 0).text();
  CHECK_CONTAINS(json, "\"mfu\":0.5,\"fma_peak_gflops\":200,");
  CHECK_CONTAINS(json, "\"heap_allocations_per_step\":0}");
}

TEST_CASE("where the peak is not measured nothing is compared with it") {
  const std::string text = bench_text(result_with_peak(0), -1);
  CHECK_CONTAINS(text, "gemm_forward  50.00   62.5 %    100.0\n");
  CHECK_CONTAINS(text, "the FMA peak of this processor is not measured\n");
  CHECK_FALSE(contains(text, "inf"));
  CHECK_FALSE(contains(text, "nan"));
  CHECK_CONTAINS(bench_json(result_with_peak(0), -1).text(),
                 "\"mfu\":null,\"fma_peak_gflops\":null,\"fma_peak_change\":null,");
  CHECK_CONTAINS(bench_json(result_with_peak(0), -1).text(), "\"heap_allocations_per_step\":null}");
}
