#include "core/parallel.h"

#include <benchmark/benchmark.h>

int main(int argc, char** argv) {
  minillm::flush_denormals();  // as the program does: one product that underflows would else cost a hundred cycles
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 2;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
