// minillm eval: the loss of a trained model on held-out text.

#include "cli/command.h"
#include "core/json_object.h"
#include "core/parallel.h"
#include "core/text.h"
#include "train/evaluate.h"
#include "train/loaded_run.h"
#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace minillm::cli {

namespace {

int run_eval(const Arguments& arguments) {
  const LoadedRun run = load_run(arguments.words().front(), arguments.text("checkpoint"));
  set_num_threads(std::min(run.config.train.threads, usable_cores()));
  const TokenFile data = open_data_for(run, arguments.text("data"));
  const int64_t T = run.config.data.seq_len;
  const Loader windows = validation_windows(data.val, run.config.data);
  const int64_t count = arguments.given("tokens") ? arguments.integer("tokens", T) / T : windows.windows();
  const Evaluation result =
      evaluate(*run.model, windows, count, run.config.train.micro_batch_size, tape_options(run.config.train));
  const double bits = bits_per_byte(result.loss, run.config.data, data);
  if (arguments.given("json")) {
    JsonObject json;
    json.add("val_loss", result.loss);
    json.add("bits_per_byte", bits);
    json.add("tokens", result.tokens);
    json.add("step", run.step);
    json.add("checkpoint", run.checkpoint);
    std::printf("%s\n", json.text().c_str());
    return 0;
  }
  fmt::print("{} after {} steps on {}\n", run.checkpoint, thousands(run.step), data.path);
  fmt::print("val_loss       {:.6f} nats per token (perplexity {:.2f})\n", result.loss, std::exp(result.loss));
  fmt::print("bits_per_byte  {}\n", std::isnan(bits)
                                        ? "unknown: the data has no byte counts, or hidden tokens were predicted"
                                        : fmt::format("{:.6f}", bits));
  fmt::print("tokens         {} in {} windows of {}\n", thousands(result.tokens), thousands(result.windows), T);
  return 0;
}

}  // namespace

Command eval_command() {
  return {{.name = "eval",
           .words = "RUN",
           .summary = "validation loss and bits per byte of a trained model",
           .min_words = 1,
           .max_words = 1,
           .options = {{"data", "FILE", "", "another data file than the run's, made with the same tokenizer"},
                       {"tokens", "N", "", "read the first N tokens of /val (default: all)"},
                       {"checkpoint", "best|last|N", "last", "which checkpoint"},
                       {"json", "", "", "one JSON object on standard output"}},
           .examples = {"minillm eval runs/baseline --checkpoint best"}},
          run_eval};
}

}  // namespace minillm::cli
