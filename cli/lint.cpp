// minillm lint: what is known to go wrong, looked for in configs and runs.

#include "train/lint.h"
#include "cli/command.h"
#include "cli/config_json.h"
#include "core/parallel.h"
#include "core/terminal.h"
#include "train/complete_config.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace minillm::cli {

namespace {

struct Report {
  std::string path;
  std::vector<Finding> findings;
};

Report lint(const std::string& path, const std::vector<std::string>& overrides) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    const LoadedConfig loaded = load_without_data(path, overrides);
    return {path, audible(lint_config(loaded.config), loaded.config)};
  }
  if (!overrides.empty()) {
    fail_input(
        {.where = overrides.front(), .what = "a run keeps its settings", .hint = "lint its config.toml instead"});
  }
  return {path, lint_run(path)};
}

void print_rules() {
  Table table({"id", "", "what", "looked for in"});
  for (const LintRule& rule : lint_rules()) {
    table.add_row({std::string(rule.id), std::string(severity_name(rule.severity)), std::string(rule.name),
                   std::string(rule.found_by)});
  }
  std::fputs(table.text().c_str(), stdout);
}

void print_json(const std::vector<Report>& reports) {
  std::vector<JsonObject> objects;
  for (const Report& report : reports) {
    for (const Finding& finding : report.findings) {
      JsonObject json = finding_json(finding);
      json.add("path", report.path);
      objects.push_back(json);
    }
  }
  JsonObject json;
  json.add("lints", objects);
  std::printf("%s\n", json.text().c_str());
}

int run(const Arguments& arguments) {
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
  set_num_threads(usable_cores());
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
      run};
}

}  // namespace minillm::cli
