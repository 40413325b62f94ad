// Lints of what a run has logged, and of its whole folder.

#include "core/log.h"
#include "train/checkpoint.h"
#include "train/complete_config.h"
#include "train/evaluate.h"
#include "train/lint.h"
#include "train/loaded_run.h"
#include "train/run_folder.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace minillm {

namespace {

constexpr double surge = 10;  // times the median gradient norm

double median_norm(const Metrics& metrics) {
  std::vector<double> norms;
  for (const TrainRecord& record : metrics.train) {
    if (std::isfinite(record.grad_norm)) {
      norms.push_back(record.grad_norm);
    }
  }
  if (norms.empty()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const auto middle = norms.begin() + static_cast<std::ptrdiff_t>(norms.size() / 2);
  std::nth_element(norms.begin(), middle, norms.end());
  return *middle;
}

void append(std::vector<Finding>& to, std::vector<Finding> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// Weights and metrics can be looked at only beside the data they belong to.
std::vector<Finding> lint_with_data(const std::string& folder) {
  std::vector<Finding> findings;
  try {
    const LoadedRun run = load_run(folder, "last");
    const TokenFile data = open_data_for(run, "");
    const double unigram_loss = data.unigram_loss.value_or(std::numeric_limits<double>::quiet_NaN());
    const Metrics metrics = read_metrics(metrics_path(folder));
    append(findings, lint_metrics(metrics, summarize(metrics, unigram_loss)));
    append(findings, lint_weights(*run.model, validation_windows(data.val, run.config.data)));
  } catch (const Error& error) {
    log_warning("of {} only the config is looked at: {}", folder, error.what());
  }
  return findings;
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
  const double median = median_norm(metrics);
  const double highest = summary.grad_norm_max_first_100;
  if (highest > surge * median) {
    const auto at = std::find_if(metrics.train.begin(), metrics.train.end(),
                                 [&](const TrainRecord& record) { return record.grad_norm == highest; });
    findings.push_back(
        make_finding("E08",
                     fmt::format("the gradient's norm reached {:.4g} at step {}, {:.0f} times its median {:.4g}",
                                 highest, at == metrics.train.end() ? 0 : at->step, highest / median, median),
                     "more optim.warmup_steps or a lower optim.lr"));
  }
  if (summary.diverged) {
    findings.push_back(make_finding("E09", "some loss was more than 1 nat above the first, or not finite",
                                    "a lower optim.lr, or optim.grad_clip"));
  }
  return findings;
}

std::vector<Finding> lint_run(const std::string& folder) {
  check_run_folder(folder);
  LoadedConfig loaded = load_config(config_path(folder));
  complete_config(loaded, nullptr);
  std::vector<Finding> findings = lint_config(loaded.config, Transformer(loaded.config.model));
  append(findings, audible(lint_with_data(folder), loaded.config));
  return findings;
}

}  // namespace minillm
