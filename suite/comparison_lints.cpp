#include "suite/comparison_lints.h"

#include "suite/speed.h"

#include <algorithm>
#include <cmath>

namespace minillm {

namespace {

using Findings = std::vector<std::pair<std::string, Finding>>;

void lint_noise(const NoiseFloor& noise, Findings& findings) {
  if (!noise.is_enough()) {
    findings.emplace_back("", make_finding("E17", noise.is_known() ? fmt::format("it rests on {} seeds of {}",
                                                                                 noise.seeds, noise.of)
                                                                   : "no config was run with several seeds",
                                           "run the reference with 5 seeds"));
  }
}

void lint_verdict(const RunGroup& group, Findings& findings) {
  if (group.verdict == Verdict::refused) {
    findings.emplace_back(group.name, make_finding("E10", group.sentence, "match the sizes, tokens and data"));
  } else if (group.verdict == Verdict::no_conclusion) {
    findings.emplace_back(group.name, make_finding("E16", group.sentence, "more seeds narrow the means"));
  }
  if (group.speed_measurements < speed_repeats && group.over > 0) {
    findings.emplace_back(group.name,
                          make_finding("E18", "its tokens/s are the median of whatever ran beside its runs",
                                       "minillm experiment measures each config alone, three times"));
  }
}

double last_train_loss(const RunRecord& run) {
  return run.metrics.train.empty() ? std::nan("") : run.metrics.train.back().loss;
}

/// The same plain network but for its depth (and the width that keeps its size).
bool is_deeper_plain(const RunRecord& deep, const RunRecord& shallow) {
  const auto is_depth = [](const ConfigChange& change) {
    return change.key == "model.n_layers" || change.key == "model.d_ff" || change.key == "train.seed" ||
           change.key.starts_with("run.") || change.key == "data.path";
  };
  const std::vector<ConfigChange> changes = diff(shallow.config, deep.config);
  return deep.config.model.residual == "none" && shallow.config.model.residual == "none" &&
         deep.config.model.n_layers > shallow.config.model.n_layers &&
         std::all_of(changes.begin(), changes.end(), is_depth);
}

/// He et al. 2016 (arXiv:1512.03385): a deeper plain network trains worse though its gradients are normal.
void lint_degradation(const Comparison& comparison, Findings& findings) {
  for (const RunGroup& deep : comparison.groups) {
    for (const RunGroup& shallow : comparison.groups) {
      const RunRecord& deep_run = comparison.runs[deep.runs.front()];
      const RunRecord& shallow_run = comparison.runs[shallow.runs.front()];
      const double ratio = deep.grad_norm_max_first_100 / shallow.grad_norm_max_first_100;
      const bool is_normal = ratio > 0.1 && ratio < 10;
      if (is_normal && is_deeper_plain(deep_run, shallow_run) &&
          last_train_loss(deep_run) > last_train_loss(shallow_run)) {
        findings.emplace_back(
            deep.name,
            make_finding("E03",
                         fmt::format("{} layers end at a training loss of {:.4f}, {} layers at {:.4f}, and the largest "
                                     "gradients are only {:.2g} times as large",
                                     deep_run.config.model.n_layers, last_train_loss(deep_run),
                                     shallow_run.config.model.n_layers, last_train_loss(shallow_run), ratio),
                         "a residual stream is for more than gradients"));
      }
    }
  }
}

}  // namespace

Findings lint_comparison(const Comparison& comparison) {
  Findings findings;
  lint_noise(comparison.noise, findings);
  for (const RunGroup& group : comparison.groups) {
    lint_verdict(group, findings);
    const RunRecord& run = comparison.runs[group.runs.front()];
    std::vector<Finding> own = lint_config(run.config);
    for (Finding& finding : lint_metrics(run.metrics, run.summary)) {
      own.push_back(std::move(finding));
    }
    for (Finding& finding : audible(std::move(own), run.config)) {
      findings.emplace_back(group.name, std::move(finding));
    }
  }
  lint_degradation(comparison, findings);
  return findings;
}

}  // namespace minillm
