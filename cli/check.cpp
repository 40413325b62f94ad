// minillm check: validates a config, and shows what it means: every setting, the ledger, memory. Reads no data unless
// the config leaves the vocabulary to it.

#include "cli/command.h"
#include "cli/config_json.h"
#include "cli/ledger_text.h"
#include "core/text.h"
#include "nn/ledger.h"
#include "nn/match.h"
#include "train/complete_config.h"
#include "train/config_checks.h"
#include "train/memory_estimate.h"
#include "train/trainer.h"
#include "train/unused_keys.h"

#include <algorithm>
#include <cstdio>

namespace minillm::cli {

namespace {

constexpr double most_bytes = 9e18;                         // what 64 bits hold
constexpr int64_t most_parameters = 1'000'000'000'000'000;  // counts stay exact

void print_json(const Config& config, const Ledger& ledger, const std::vector<Finding>& lints,
                const MemoryEstimate& memory) {
  JsonObject json;
  json.add("config", config_json(config));
  add_count(json, ledger);
  add_costs(json, ledger, config.stored_dtype());
  json.add("training_bytes", memory.state);
  json.add("memory_bytes", static_cast<int64_t>(std::min(memory.total(), most_bytes)));
  json.add_null("seconds_per_step");
  json.add("lints", findings_json(lints));
  std::printf("%s\n", json.text().c_str());
}

void print_text(const LoadedConfig& loaded, const Ledger& ledger, const std::vector<Finding>& lints,
                const MemoryEstimate& memory) {
  fmt::print("{}\n{}", to_toml(loaded.config, loaded.origins), parts_text(ledger));
  fmt::print(
      "weights, gradients and optimizer take {} in {}, training at least {}; a token costs {:.2f} MFLOP at {} "
      "positions\n",
      bytes_text(static_cast<double>(memory.state)), loaded.config.train.dtype, bytes_text(memory.total()),
      static_cast<double>(ledger.flops_per_token) / 1e6, loaded.config.model.max_seq_len);
  for (const std::string& notice : config_notices(loaded.config)) {
    fmt::print("note: {}\n", notice);
  }
  for (const std::string& note : unused_keys(loaded.config, loaded.origins)) {
    fmt::print("note: {}\n", note);
  }
  for (const Finding& finding : lints) {
    fmt::print("{}\n", describe(finding));
  }
}

int run_check(const Arguments& arguments) {
  const int64_t wanted = arguments.given("match") ? arguments.integer("match", 1, most_parameters) : 0;
  LoadedConfig loaded = load_without_data(arguments.words().front(), arguments.overrides());
  if (wanted > 0) {
    const WidthMatch match = match_parameters(loaded.config.model, wanted);
    loaded.config.model.d_ff = match.d_ff;
    loaded.origins["model.d_ff"] = "--match";
    if (!arguments.given("json")) {
      fmt::print("model.d_ff = {} gives {} parameters, {:+} ({:+.3f} %)\n\n", match.d_ff, thousands(match.parameters),
                 match.difference, match.percent);
    }
  }
  const Transformer model(loaded.config.model);
  const Ledger ledger = make_ledger(model, loaded.config.release);
  const std::vector<Finding> lints = audible(lint_config(loaded.config), loaded.config);
  const MemoryEstimate memory = estimate_memory(model, loaded.config);
  if (arguments.given("json")) {
    print_json(loaded.config, ledger, lints, memory);
  } else {
    print_text(loaded, ledger, lints, memory);
  }
  return 0;
}

}  // namespace

Command check_command() {
  return {{.name = "check",
           .words = "CONFIG.toml",
           .summary = "validates a config; shows every setting, the parameter ledger and memory",
           .min_words = 1,
           .max_words = 1,
           .overrides = true,
           .options = {{"match", "N", "", "solve for the d_ff that gives N parameters"},
                       {"json", "", "", "one JSON object on standard output"}},
           .examples = {"minillm check configs/baseline.toml",
                        "minillm check configs/baseline.toml model.n_kv_heads=2 --match 3688704"}},
          run_check};
}

}  // namespace minillm::cli
