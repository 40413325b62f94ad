// minillm lint: what is known to go wrong, looked for in configs and runs.

#include "train/lint.h"
#include "cli/command.h"
#include "cli/config_json.h"
#include "cli/layers_text.h"
#include "core/parallel.h"
#include "core/terminal.h"
#include "train/complete_config.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace minillm::cli {

namespace {

struct Report : LintReport {
  std::string path;
};

Report lint(const std::string& path, const std::vector<std::string>& overrides) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    const LoadedConfig loaded = load_without_data(path, overrides);
    return {{.findings = audible(lint_config(loaded.config), loaded.config)}, path};
  }
  if (!overrides.empty()) {
    fail_input(
        {.where = overrides.front(), .what = "a run keeps its settings", .hint = "lint its config.toml instead"});
  }
  return {lint_run(path), path};
}

void print_rules() {
  Table table({"id", "", "what", "looked for in"});
  for (const LintRule& rule : lint_rules()) {
    table.add_row({std::string(rule.id), std::string(severity_name(rule.severity)), std::string(rule.name),
                   std::string(rule.found_by)});
  }
  std::fputs(table.text().c_str(), stdout);
}

/// What the lints of weights looked at, whether or not it made one fire.
std::string layers_text(const std::vector<LayerStatistics>& layers) {
  Table table({"layer", "stream RMS", "mean's share", "token cosine", "to first token", "largest score",
               "largest in FFN", "dead units", "norms' gain", "norms' RMS", "experts' shares"});
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const LayerStatistics& at = layers[layer];
    const auto [least, most] = std::minmax_element(at.expert_shares.begin(), at.expert_shares.end());
    table.add_row({std::to_string(layer), number_text(at.stream_rms), number_text(at.mean_share),
                   number_text(at.token_cosine), number_text(at.first_token_share), number_text(at.largest_score),
                   number_text(at.ffn_largest), number_text(at.ffn_dead), number_text(at.norm_gain),
                   number_text(at.norm_output),
                   at.expert_shares.empty() ? "-" : fmt::format("{:.3f} to {:.3f}", *least, *most)});
  }
  return table.text();
}

void print_json(const std::vector<Report>& reports) {
  std::vector<JsonObject> objects;
  std::vector<JsonObject> layers;
  for (const Report& report : reports) {
    for (const Finding& finding : report.findings) {
      JsonObject json = finding_json(finding);
      json.add("path", report.path);
      objects.push_back(json);
    }
    for (size_t layer = 0; layer < report.layers.size(); ++layer) {
      JsonObject json = to_json(layer, report.layers[layer]);
      json.add("path", report.path);
      layers.push_back(json);
    }
  }
  JsonObject json;
  json.add("lints", objects);
  json.add("layers", layers);
  std::printf("%s\n", json.text().c_str());
}

int run_lint(const Arguments& arguments) {
  if (arguments.given("list")) {
    if (!arguments.words().empty() || arguments.given("json")) {
      fail_input({.where = "--list", .what = "stands alone", .hint = "minillm lint --list"});
    }
    print_rules();
    return 0;
  }
  if (arguments.words().empty()) {
    fail_input({.where = "lint",
                .what = "a config or a run is missing",
                .expected = "CONFIG.toml or DIR",
                .hint = "minillm lint configs/baseline.toml"});
  }
  set_num_threads(0);
  std::vector<Report> reports;
  bool has_error = false;
  for (const std::string& path : arguments.words()) {
    reports.push_back(lint(path, arguments.overrides()));
    const std::vector<Finding>& findings = reports.back().findings;
    has_error = has_error || std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
                  return finding.rule->severity == Severity::error;
                });
  }
  if (arguments.given("json")) {
    print_json(reports);
  } else {
    for (const Report& report : reports) {
      for (const Finding& finding : report.findings) {
        fmt::print("{}: {}\n", report.path, describe(finding));
      }
      if (report.findings.empty()) {
        fmt::print("{}: nothing found\n", report.path);
      }
      if (!report.layers.empty()) {
        fmt::print("\n{}{}", layers_text(report.layers), gates_text(report.layers));
      }
    }
  }
  return has_error ? 1 : 0;
}

}  // namespace

Command lint_command() {
  return {
      {.name = "lint",
       .words = "CONFIG.toml|DIR...",
       .summary = "what is known to go wrong, looked for in configs and runs",
       .note = "Ends with status 1 when an error is found; run.silence keeps warnings and infos from being told.",
       .max_words = 64,
       .overrides = true,
       .options = {{"list", "", "", "every lint with its id"}, {"json", "", "", "one JSON object on standard output"}},
       .examples = {"minillm lint configs/ablations/post_ln.toml optim.lr=3e-3", "minillm lint runs/baseline"}},
      run_lint};
}

}  // namespace minillm::cli
