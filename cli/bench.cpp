// minillm bench: how fast a config trains here, phase by phase, beside the machine's peak.

#include "train/bench.h"

#include "cli/command.h"
#include "cli/heap_watch.h"
#include "cli/json_object.h"
#include "core/parallel.h"
#include "core/terminal.h"
#include "core/text.h"
#include "train/complete_config.h"

#include <cstdio>

namespace minillm::cli {

namespace {

JsonObject phases_json(const BenchResult& result) {
  JsonObject json;
  for (size_t i = 0; i < phase_count; ++i) {
    json.add(name_of(static_cast<Phase>(i)), 1e3 * result.phases[i]);
  }
  return json;
}

void print_json(const BenchResult& result, int allocations) {
  JsonObject json;
  json.add("tokens_per_s", result.tokens_per_second());
  json.add("step_ms", 1e3 * result.step_seconds);
  json.add("phases_ms", phases_json(result));
  json.add("mfu", result.mfu());
  json.add("fma_peak_gflops", result.fma_peak_gflops);
  json.add("fma_peak_change", result.fma_peak_change);
  json.add("flops_per_step", result.flops);
  json.add("tokens_per_step", result.tokens_per_step);
  json.add("parameters", result.parameters);
  json.add("threads", int64_t{num_threads()});
  json.add("loss", result.last_loss);
  json.add("peak_memory_bytes", result.peak_memory_bytes);
  json.add("memory_before_bytes", result.memory_before_bytes);
  json.add("memory_formula_bytes", result.memory_formula_bytes);
  json.add("arena_bytes", result.arena_bytes);
  if (allocations >= 0) {
    json.add("heap_allocations_per_step", int64_t{allocations});
  } else {
    json.add_null("heap_allocations_per_step");
  }
  std::printf("%s\n", json.text().c_str());
}

std::string phase_table(const BenchResult& result) {
  Table table({"phase", "ms", "share", "GFLOP/s", "of peak"});
  for (size_t i = 0; i < phase_count; ++i) {
    std::vector<std::string> cells = {std::string(name_of(static_cast<Phase>(i))),
                                      fmt::format("{:.2f}", 1e3 * result.phases[i]),
                                      fmt::format("{:.1f} %", 100 * result.phases[i] / result.step_seconds)};
    if (result.phase_flops[i] > 0 && result.phases[i] > 0) {
      const double gflops = result.phase_flops[i] / result.phases[i] / 1e9;
      cells.push_back(fmt::format("{:.1f}", gflops));
      cells.push_back(fmt::format("{:.1f} %", 100 * gflops / result.fma_peak_gflops));
    }
    table.add_row(std::move(cells));
  }
  table.add_rule();
  const double gflops = result.flops / result.step_seconds / 1e9;
  table.add_row({"step", fmt::format("{:.2f}", 1e3 * result.step_seconds), "100 %", fmt::format("{:.1f}", gflops),
                 fmt::format("{:.1f} %", 100 * result.mfu())});
  return table.text();
}

void print_text(const BenchResult& result, int allocations) {
  fmt::print("{} parameters, {} tokens a step, {} threads\n{}", thousands(result.parameters),
             thousands(result.tokens_per_step), num_threads(), phase_table(result));
  fmt::print("{:.0f} tokens/s; FMA peak {:.1f} GFLOP/s ({:+.1f} % from before to after)\n", result.tokens_per_second(),
             result.fma_peak_gflops, 100 * result.fma_peak_change);
  const double used = static_cast<double>(result.peak_memory_bytes - result.memory_before_bytes);
  fmt::print("peak memory {}, {} before the model; the difference is {:.2f} of the formula's {}\n",
             bytes_text(static_cast<double>(result.peak_memory_bytes)),
             bytes_text(static_cast<double>(result.memory_before_bytes)), used / result.memory_formula_bytes,
             bytes_text(result.memory_formula_bytes));
  fmt::print("heap allocations in a step: {}; loss of the last one {:.4f}\n",
             allocations < 0 ? "not counted in this build" : std::to_string(allocations), result.last_loss);
}

int run(const Arguments& arguments) {
  LoadedConfig loaded = load_config(arguments.words().front(), arguments.overrides());
  Config& config = loaded.config;
  if (config.data.path.empty()) {
    config.model.vocab_size = config.model.vocab_size == 0 ? 2048 : config.model.vocab_size;
    complete_config(loaded, nullptr);
  } else {
    const TokenFile data = open_data_of(loaded);
    complete_config(loaded, &data);
  }
  set_num_threads(config.train.threads > 0 ? config.train.threads : usable_cores());
  const BenchOptions options = {.steps = arguments.integer("steps", 1, 1'000'000)};
  config.train.steps = std::max(config.train.steps, options.warmup_steps + options.steps + 1);
  int allocations = -1;
  const BenchResult result = bench(config, options, [&](const std::function<void()>& step) {
    const HeapWatch watch;
    step();
    allocations = HeapWatch::count();
  });
  if (arguments.given("json")) {
    print_json(result, allocations);
  } else {
    print_text(result, allocations);
  }
  return 0;
}

}  // namespace

Command bench_command() {
  return {{.name = "bench",
           .words = "CONFIG.toml",
           .summary = "the speed of a config's training step, phase by phase, beside the machine's peak",
           .min_words = 1,
           .max_words = 1,
           .overrides = true,
           .options = {{"steps", "N", "20", "steps that are counted, after 5 to warm up"},
                       {"json", "", "", "one JSON object on standard output"}},
           .examples = {"minillm bench configs/baseline.toml train.batch_size=4"}},
          run};
}

}  // namespace minillm::cli
