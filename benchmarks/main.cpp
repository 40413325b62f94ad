#include "core/parallel.h"

#include <benchmark/benchmark.h>

int main(int argc, char** argv) {
  // As the program does: all cores, and no product that underflows costs a hundred cycles.
  minillm::set_num_threads(minillm::usable_cores());
  minillm::flush_denormals();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 2;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
