#include "core/parallel.h"

#include <benchmark/benchmark.h>

int main(int argc, char** argv) {
  minillm::set_num_threads(minillm::usable_cores());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 2;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
