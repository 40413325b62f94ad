// minillm bench: how fast a config trains here, phase by phase, beside the machine's peak.

#include "train/bench.h"

#include "cli/bench_text.h"
#include "cli/command.h"
#include "cli/heap_watch.h"
#include "core/parallel.h"

#include <cstdio>

namespace minillm::cli {

namespace {

int run_bench(const Arguments& arguments) {
  LoadedConfig loaded = load_config(arguments.words().front(), arguments.overrides());
  set_num_threads(loaded.config.train.threads);
  int allocations = -1;
  const BenchOptions options = {.steps = arguments.integer("steps", 1, 1'000'000)};
  const BenchResult result = bench(std::move(loaded), options, [&](const std::function<void()>& step) {
    const HeapWatch watch;
    step();
    allocations = HeapWatch::count();
  });
  const std::string text =
      arguments.given("json") ? bench_json(result, allocations).text() + "\n" : bench_text(result, allocations);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

Command bench_command() {
  return {
      {.name = "bench",
       .words = "CONFIG.toml",
       .summary = "the speed of a config's training step, phase by phase, beside the machine's peak",
       .note = fmt::format("Without data.path the tokens are random, of a vocabulary of {} where the config has none.",
                           bench_vocab_size),
       .min_words = 1,
       .max_words = 1,
       .overrides = true,
       .options = {{"steps", "N", "20", "steps that are counted, after 5 to warm up"},
                   {"json", "", "", "one JSON object on standard output"}},
       .examples = {"minillm bench configs/baseline.toml train.batch_size=4"}},
      run_bench};
}

}  // namespace minillm::cli
