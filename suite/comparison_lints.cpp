#include "suite/comparison_lints.h"

#include "suite/run_settings.h"
#include "suite/speed.h"

#include <algorithm>

namespace minillm {

namespace {

using Findings = std::vector<std::pair<std::string, Finding>>;

constexpr double steady = 1.2;  // the fastest of three measurements over the slowest

void lint_noise(const NoiseFloor& noise, Findings& findings) {
  if (!noise.is_enough()) {
    findings.emplace_back(
        "", make_finding("E17",
                         noise.is_known() ? fmt::format("it rests on {} seeds of {}", noise.seeds, noise.of)
                                          : "no config was trained with several seeds",
                         "run the reference with 5 seeds"));
  }
}

void lint_verdict(const RunGroup& group, Findings& findings) {
  if (group.verdict == Verdict::refused) {
    findings.emplace_back(group.name, make_finding("E10", group.sentence, "match the sizes, tokens and data"));
  } else if (group.verdict == Verdict::no_conclusion && group.noise.is_enough()) {
    findings.emplace_back(group.name, make_finding("E16", group.sentence, "more seeds narrow the means"));
  }
  if (group.speeds.size() < speed_repeats && group.ended > 0) {
    findings.emplace_back(group.name, make_finding("E18", "its tokens/s are the median of its runs' own",
                                                   "minillm experiment measures each config alone, three times"));
  } else if (!group.speeds.empty()) {
    const auto [least, most] = std::minmax_element(group.speeds.begin(), group.speeds.end());
    if (*most > steady * *least) {
      findings.emplace_back(group.name,
                            make_finding("E18",
                                         fmt::format("its measurements lie between {:.0f} and {:.0f} "
                                                     "tokens/s: something ran beside them",
                                                     *least, *most),
                                         "remove speed.jsonl, and start the suite again on a quiet machine"));
    }
  }
}

/// Mean over a group's runs of the last tenth of what they logged; NaN when one logged nothing.
double late_train_loss(const Comparison& comparison, const RunGroup& group) {
  double sum = 0;
  int64_t count = 0;
  for (const size_t index : group.runs) {
    const std::vector<TrainRecord>& train = comparison.runs[index].metrics.train;
    const size_t tail = std::max<size_t>(1, train.size() / 10);
    for (size_t i = train.size() - std::min(tail, train.size()); i < train.size(); ++i) {
      sum += train[i].loss;
      ++count;
    }
  }
  return count == 0 ? not_known : sum / static_cast<double>(count);
}

/// The same plain network but for its depth (and the width that keeps its size).
bool is_deeper_plain(const RunRecord& deep, const RunRecord& shallow) {
  const ModelConfig& model = deep.config.model;
  if (model.residual != "none" || shallow.config.model.residual != "none" ||
      model.n_layers <= shallow.config.model.n_layers) {
    return false;
  }
  const std::vector<ConfigChange> changes = diff(shallow.config, deep.config);
  return std::all_of(changes.begin(), changes.end(), [](const ConfigChange& change) {
    return change.key == "model.n_layers" || change.key == "model.d_ff" || is_repeat_setting(change.key);
  });
}

/// He et al. 2016 (arXiv:1512.03385): a deeper plain network trains worse though its gradients are normal.
void lint_degradation(const Comparison& comparison, Findings& findings) {
  for (const RunGroup& deep : comparison.groups) {
    for (const RunGroup& shallow : comparison.groups) {
      const RunRecord& deep_run = comparison.runs[deep.runs.front()];
      const RunRecord& shallow_run = comparison.runs[shallow.runs.front()];
      if (!is_deeper_plain(deep_run, shallow_run)) {
        continue;
      }
      const double ratio = deep.grad_norm_max_first_100 / shallow.grad_norm_max_first_100;
      const double deep_loss = late_train_loss(comparison, deep);
      const double shallow_loss = late_train_loss(comparison, shallow);
      const bool is_normal = ratio > 0.1 && ratio < 10;
      if (is_normal && deep_loss > shallow_loss + deep.noise.of_means()) {
        findings.emplace_back(
            deep.name,
            make_finding("E03",
                         fmt::format("{} layers end at a training loss of {:.4f}, {} layers at {:.4f}, though the "
                                     "largest gradients are {:.2g} times as large",
                                     deep_run.config.model.n_layers, deep_loss, shallow_run.config.model.n_layers,
                                     shallow_loss, ratio),
                         "a residual stream is for more than gradients"));
      }
    }
  }
}

/// What is known of each run; of its config once.
void lint_runs(const Comparison& comparison, const RunGroup& group, Findings& findings) {
  const Config& config = comparison.runs[group.runs.front()].config;
  for (Finding& finding : audible(lint_config(config), config)) {
    findings.emplace_back(group.name, std::move(finding));
  }
  for (const size_t index : group.runs) {
    const RunRecord& run = comparison.runs[index];
    for (Finding& finding : audible(lint_metrics(run.metrics, run.summary), run.config)) {
      findings.emplace_back(fmt::format("{}, seed {}", group.name, run.seed()), std::move(finding));
    }
  }
}

}  // namespace

Findings lint_comparison(const Comparison& comparison) {
  Findings findings;
  lint_noise(comparison.noise, findings);
  for (const RunGroup& group : comparison.groups) {
    lint_verdict(group, findings);
    lint_runs(comparison, group, findings);
  }
  lint_degradation(comparison, findings);
  return findings;
}

}  // namespace minillm
