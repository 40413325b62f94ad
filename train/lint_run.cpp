// Lints of what a run has logged, and of its whole folder.

#include "core/log.h"
#include "train/complete_config.h"
#include "train/evaluate.h"
#include "train/lint.h"
#include "train/loaded_run.h"
#include "train/run_folder.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>

namespace minillm {

namespace {

constexpr double surge = 10;  // times the median gradient norm

void append(std::vector<Finding>& to, std::vector<Finding> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

void log_unseen_weights(const std::string& folder, const Error& error) {
  log_warning("the weights of {} are not looked at: {}", folder, error.what());
}

std::optional<LoadedRun> newest_of(const std::string& folder) {
  try {
    return load_run(folder, "last");
  } catch (const Error& error) {
    log_unseen_weights(folder, error);
    return std::nullopt;
  }
}

/// Weights can be looked at only beside the data they belong to, and without its unigram loss a run cannot be seen to
/// stall.
std::optional<TokenFile> data_of(const std::optional<LoadedRun>& newest, const Config& config,
                                 const std::string& folder) {
  try {
    return newest ? open_data_for(*newest, "") : open_data(config.data.path);
  } catch (const Error& error) {
    if (newest) {
      log_unseen_weights(folder, error);
    }
    return std::nullopt;
  }
}

/// None where the data has too few tokens for a window.
LintReport lint_weights_of(const LoadedRun& run, const TokenFile& data, const std::string& folder) {
  try {
    return lint_weights(*run.model, validation_windows(data.val, run.config.data));
  } catch (const Error& error) {
    log_unseen_weights(folder, error);
    return {};
  }
}

}  // namespace

std::vector<Finding> lint_metrics(const Metrics& metrics, const Summary& summary) {
  std::vector<Finding> findings;
  if (summary.stalled) {
    findings.push_back(make_finding("E07",
                                    fmt::format("validation loss {:.4f} over the last quarter, {:.4f} for knowing only "
                                                "how frequent each token is",
                                                summary.final_val_loss, summary.unigram_loss),
                                    "a lower optim.lr, more optim.warmup_steps, or model.norm_position = \"pre\""));
  }
  std::vector<double> norms;
  for (const TrainRecord& record : metrics.train) {
    norms.push_back(record.grad_norm);
  }
  const double usual = median(std::move(norms));
  const double highest = summary.grad_norm_max_first_100;
  if (usual > 0 && highest > surge * usual) {
    const auto at = std::find_if(metrics.train.begin(), metrics.train.end(),
                                 [&](const TrainRecord& record) { return record.grad_norm == highest; });
    findings.push_back(
        make_finding("E08",
                     fmt::format("the gradient's norm reached {:.4g} at step {}, {:.0f} times its median {:.4g}",
                                 highest, at == metrics.train.end() ? 0 : at->step, highest / usual, usual),
                     "more optim.warmup_steps or a lower optim.lr"));
  }
  if (summary.diverged) {
    findings.push_back(make_finding("E09", "some loss was more than 1 nat above the first, or not finite",
                                    "a lower optim.lr, or optim.grad_clip"));
  }
  return findings;
}

LintReport lint_run(const std::string& folder) {
  check_run_folder(folder);
  const std::optional<LoadedRun> newest = newest_of(folder);
  const Config config = newest ? newest->config : load_without_data(config_path(folder), {}).config;
  const std::optional<TokenFile> data = data_of(newest, config, folder);
  LintReport report{.findings = lint_config(config)};
  const Metrics metrics = read_metrics(metrics_path(folder));
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  const double unigram_loss = data ? data->unigram_loss.value_or(unknown) : unknown;
  append(report.findings, lint_metrics(metrics, summarize(metrics, unigram_loss)));
  if (newest && data) {
    LintReport of_weights = lint_weights_of(*newest, *data, folder);
    append(report.findings, std::move(of_weights.findings));
    report.layers = std::move(of_weights.layers);
    append(report.findings, lint_gates(config.model, report.layers));
  }
  report.findings = audible(std::move(report.findings), config);
  return report;
}

}  // namespace minillm
