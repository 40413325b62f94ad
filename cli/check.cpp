// minillm check: validates a config, and shows what it means: every setting, the ledger, memory. Reads no data unless
// the config leaves the vocabulary to it.

#include "cli/command.h"
#include "cli/json_object.h"
#include "core/terminal.h"
#include "core/text.h"
#include "nn/ledger.h"
#include "nn/match.h"
#include "train/complete_config.h"
#include "train/config_checks.h"
#include "train/memory_estimate.h"
#include "train/trainer.h"
#include "train/unused_keys.h"

#include <cstdio>

namespace minillm::cli {

namespace {

constexpr int64_t most_parameters = 1'000'000'000'000'000;  // counts stay exact

LoadedConfig load(const Arguments& arguments) {
  LoadedConfig loaded = load_config(arguments.words().front(), arguments.overrides());
  if (loaded.config.model.vocab_size == 0 && !loaded.config.data.path.empty()) {
    const TokenFile data = open_data_of(loaded);
    complete_config(loaded, &data);
  } else {
    complete_config(loaded, nullptr);
  }
  return loaded;
}

std::string ledger_text(const Ledger& ledger) {
  Table table({"part", "parameters", "share", "per unit", "units", "per unit from shapes"});
  for (const LedgerGroup& group : ledger.groups) {
    std::string derivation = group.derivation;
    if (group.beside > 0) {
      derivation += fmt::format(", + {} {}", group.beside, group.name == "norms" ? "final" : "at both ends");
    }
    table.add_row({std::string(group.name), thousands(group.parameters), fmt::format("{:.2f} %", 100 * group.share),
                   thousands(group.per_unit), thousands(group.units), derivation});
  }
  table.add_rule();
  table.add_row({"all", thousands(ledger.parameters), "100 %"});
  return table.text() + fmt::format("shares are of {}; classic estimate 12 L d^2 + V d = {}, off by {}\n",
                                    ledger_denominator, thousands(ledger.classic_estimate), thousands(ledger.gap()));
}

JsonObject group_json(const LedgerGroup& group) {
  JsonObject json;
  json.add("name", group.name);
  json.add("parameters", group.parameters);
  json.add("per_unit", group.per_unit);
  json.add("units", group.units);
  json.add("share", group.share);
  json.add("of", ledger_denominator);
  return json;
}

JsonObject config_json(const Config& config) {
  JsonObject all;
  for (const std::string& section : section_names()) {
    JsonObject json;
    for (const ConfigKey& key : config_keys()) {
      if (key.section == section) {
        const std::string text = toml_text(key, config);
        json.add_raw(key.name, text.empty() ? "null" : text);
      }
    }
    all.add(section, json);
  }
  return all;
}

void print_json(const Config& config, const Ledger& ledger, int64_t state_bytes) {
  std::vector<JsonObject> groups;
  for (const LedgerGroup& group : ledger.groups) {
    groups.push_back(group_json(group));
  }
  const int64_t value_bytes = static_cast<int64_t>(size_of(model_dtype(config.train)));
  JsonObject json;
  json.add("config", config_json(config));
  json.add("parameters", ledger.parameters);
  json.add("active_parameters", ledger.active_parameters);
  json.add("text_parameters", ledger.parameters);
  json.add("buffers", int64_t{0});
  json.add("file_elements", ledger.parameters);
  json.add("groups", groups);
  json.add("classic_estimate", ledger.classic_estimate);
  json.add("gap", ledger.gap());
  json.add("flops_per_token", ledger.flops_per_token);
  json.add("crossover_context", ledger.crossover_context);
  json.add("kv_bytes_per_token", ledger.kv_values_per_token * value_bytes);
  json.add("training_bytes", state_bytes);
  json.add("memory_bytes", state_bytes);
  json.add_null("seconds_per_step");
  json.add("lints", std::vector<JsonObject>{});
  std::printf("%s\n", json.text().c_str());
}

void print_text(const LoadedConfig& loaded, const Ledger& ledger, int64_t state_bytes) {
  fmt::print("{}\n{}", to_toml(loaded.config, loaded.origins), ledger_text(ledger));
  fmt::print("weights, gradients and optimizer take {} in {}; training costs {:.2f} MFLOP a token at {} positions\n",
             bytes_text(static_cast<double>(state_bytes)), loaded.config.train.dtype,
             static_cast<double>(ledger.flops_per_token) / 1e6, loaded.config.model.max_seq_len);
  for (const std::string& notice : config_notices(loaded.config)) {
    fmt::print("note: {}\n", notice);
  }
  for (const std::string& note : unused_keys(loaded.config, loaded.origins)) {
    fmt::print("note: {}\n", note);
  }
}

int run(const Arguments& arguments) {
  const int64_t wanted = arguments.given("match") ? arguments.integer("match", 1, most_parameters) : 0;
  LoadedConfig loaded = load(arguments);
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
  const Ledger ledger = make_ledger(model);
  const int64_t state_bytes = estimate_memory(model, loaded.config).state;
  if (arguments.given("json")) {
    print_json(loaded.config, ledger, state_bytes);
  } else {
    print_text(loaded, ledger, state_bytes);
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
          run};
}

}  // namespace minillm::cli
