#include "suite/run_record.h"

#include "core/error.h"
#include "train/complete_config.h"
#include "train/line_log.h"
#include "train/run_folder.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

namespace minillm {

namespace {

bool is_run(const std::string& folder) {
  return std::filesystem::exists(config_path(folder)) && std::filesystem::exists(metrics_path(folder));
}

/// The array inside a layers.json; null where there is none.
std::string layers_of(const std::string& path) {
  const nlohmann::json layers = nlohmann::json::parse(read_text(path), nullptr, false);
  return layers.is_object() && layers.contains("layers") ? layers.at("layers").dump() : "null";
}

}  // namespace

RunRecord read_run(const std::string& folder) {
  RunRecord run{.folder = folder,
                .config = load_without_data(config_path(folder), {}).config,
                .metrics = read_metrics(metrics_path(folder)),
                .layers = layers_of(layers_path(folder)),
                .summary = {}};
  if (const std::optional<Summary> summary = read_summary(summary_path(folder))) {
    run.summary = *summary;
  } else {
    run.summary = summarize(run.metrics, std::numeric_limits<double>::quiet_NaN());
    run.summary.end = "unfinished";
    run.summary.parameters = Transformer(run.config.model).parameters().count();
  }
  return run;
}

std::vector<std::string> find_runs(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    fail_input({.where = path, .what = "no such folder", .expected = "a run, or a folder of runs"});
  }
  if (is_run(path)) {
    return {path};
  }
  std::vector<std::string> runs;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(path)) {
    if (entry.is_directory() && is_run(entry.path().string())) {
      runs.push_back(entry.path().string());
    }
  }
  if (runs.empty()) {
    fail_input({.where = path,
                .what = "holds no run",
                .expected = "folders with config.toml and metrics.jsonl",
                .hint = "minillm train or minillm experiment makes some"});
  }
  std::sort(runs.begin(), runs.end());
  return runs;
}

}  // namespace minillm
