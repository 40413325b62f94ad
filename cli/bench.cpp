// minillm bench: how fast a config trains here, phase by phase, beside the machine's peak.

#include "train/bench.h"

#include "cli/bench_text.h"
#include "cli/command.h"
#include "cli/heap_watch.h"
#include "cli/text_source.h"
#include "core/parallel.h"
#include "train/complete_config.h"
#include "train/memory_estimate.h"
#include "train/trainer.h"

#include <cstdio>

namespace minillm::cli {

namespace {

/// Text from a model of the config, with weights as they start.
int run_decode_bench(LoadedConfig loaded, const Arguments& arguments) {
  loaded.config.data.path.clear();
  loaded.config.model.vocab_size =
      loaded.config.model.vocab_size == 0 ? bench_vocab_size : loaded.config.model.vocab_size;
  complete_config(loaded, nullptr);
  const TrainConfig& train = loaded.config.train;
  Transformer model(loaded.config.model);
  check_weights_fit(model, model_dtype(train), arguments.words().front());
  model.allocate(model_dtype(train), train.seed, false);
  const std::unique_ptr<DecodingWeights> rounded = rounded_weights(arguments, model);
  int allocations = -1;
  const DecodeBenchResult result = decode_bench(model, rounded.get(), arguments.integer("prompt-tokens", 1),
                                                arguments.integer("steps", 1, 1'000'000), tape_options(train),
                                                [&](const std::function<void()>& read_one) {
                                                  const HeapWatch watch;
                                                  read_one();
                                                  allocations = HeapWatch::count();
                                                });
  const std::string text = arguments.given("json") ? decode_bench_json(result, allocations).text() + "\n"
                                                   : decode_bench_text(result, allocations);
  std::fputs(text.c_str(), stdout);
  return 0;
}

int run_bench(const Arguments& arguments) {
  LoadedConfig loaded = load_config(arguments.words().front(), arguments.overrides());
  set_num_threads(loaded.config.train.threads);
  if (arguments.given("decode")) {
    return run_decode_bench(std::move(loaded), arguments);
  }
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
       .options = {{"steps", "N", "20", "steps that are counted, after 5 to warm up; with --decode: tokens"},
                   {"decode", "", "", "instead: text, a prompt in one pass and then token by token"},
                   {"prompt-tokens", "N", "128", "with --decode: of the prompt"},
                   weights_option(),
                   {"json", "", "", "one JSON object on standard output"}},
       .examples = {"minillm bench configs/baseline.toml train.batch_size=4"}},
      run_bench};
}

}  // namespace minillm::cli
