// minillm gradcheck: every parameter of a config's model against central differences, in double.

#include "nn/model_gradcheck.h"

#include "cli/command.h"
#include "core/json_object.h"
#include "core/terminal.h"
#include "train/complete_config.h"
#include "train/trainer.h"

#include <cstdio>

namespace minillm::cli {

namespace {

constexpr double tolerance = 1e-6;

int run_gradcheck(const Arguments& arguments) {
  LoadedConfig loaded = load_config(arguments.words().front(), arguments.overrides());
  Config& config = loaded.config;
  if (config.model.vocab_size == 0) {
    config.model.vocab_size = 31;  // the check needs a vocabulary, not this run's
  }
  complete_config(loaded, nullptr);
  const std::vector<GradcheckResult> results =
      gradcheck_model(shrink_for_gradcheck(config.model), tape_options(config.train));
  const double worst = worst_error(results);
  const bool passed = worst < tolerance;
  if (arguments.given("json")) {
    std::vector<JsonObject> tensors;
    for (const GradcheckResult& result : results) {
      JsonObject tensor;
      tensor.add("name", result.name);
      tensor.add("error", result.error);
      tensor.add("analytic", result.analytic);
      tensor.add("numeric", result.numeric);
      tensors.push_back(tensor);
    }
    JsonObject json;
    json.add("passed", passed);
    json.add("worst_error", worst);
    json.add("tensors", tensors);
    std::printf("%s\n", json.text().c_str());
    return passed ? 0 : 1;
  }
  Table table({"tensor", "error", "analytic", "numeric"});
  for (const GradcheckResult& result : results) {
    table.add_row({result.name, fmt::format("{:.2e}", result.error), fmt::format("{:.6e}", result.analytic),
                   fmt::format("{:.6e}", result.numeric)});
  }
  fmt::print("{}worst error {:.2e}, tolerance {:.0e}: {}\n", table.text(), worst, tolerance,
             passed ? "passed" : "FAILED");
  return passed ? 0 : 1;
}

}  // namespace

Command gradcheck_command() {
  return {{.name = "gradcheck",
           .words = "CONFIG.toml",
           .summary = "every parameter's gradient against central differences, in double",
           .min_words = 1,
           .max_words = 1,
           .overrides = true,
           .options = {{"json", "", "", "one JSON object on standard output"}},
           .examples = {"minillm gradcheck configs/baseline.toml model.norm=layernorm"}},
          run_gradcheck};
}

}  // namespace minillm::cli
