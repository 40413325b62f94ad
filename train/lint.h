#pragma once
// Lints: what is known to go wrong, looked for before a run, in what it wrote, and in its trained weights. A warning
// names a risk; it promises no result.

#include "data/loader.h"
#include "generate/layer_statistics.h"
#include "nn/ledger.h"
#include "train/metrics.h"
#include "train/summary.h"
#include "train/train_config.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

enum class Severity : uint8_t { info, warning, error };

/// One row of the table of lints. Ids stay what they are once given; docs/lints.md has the reasons.
struct LintRule {
  std::string_view id;  ///< "E06"
  Severity severity = Severity::warning;
  std::string_view name;      ///< "post-norm without warm-up"
  std::string_view found_by;  ///< where it is looked for, "config", "run", "weights", "ledger"; or what refuses it
};

std::span<const LintRule> lint_rules();

/// A rule that applies.
struct Finding {
  const LintRule* rule = nullptr;
  std::string what;    ///< with the numbers
  std::string advice;  ///< what to do
};

/// Of a rule's id, which the table must have.
Finding make_finding(std::string_view id, std::string what, std::string advice);

/// "warning E06, post-norm without warm-up: lr is 0.003 after 0 steps of warm-up; optim.warmup_steps=100"
std::string describe(const Finding& finding);
std::string_view severity_name(Severity severity);

/// Infos as messages, the others as warnings.
void log_findings(const std::vector<Finding>& findings);

/// Of a complete config.
std::vector<Finding> lint_config(const Config& config);

/// Of counts alone, whatever model they are of.
std::vector<Finding> lint_count(const TensorCount& count);

/// The same, and what a number of parameters alone would hide. `context`: past tokens, 0: not asked about.
std::vector<Finding> lint_ledger(const Config& config, const Ledger& ledger, int64_t context);

/// Of what a run has logged so far.
std::vector<Finding> lint_metrics(const Metrics& metrics, const Summary& summary);

/// What was found, and what was looked at.
struct LintReport {
  std::vector<Finding> findings = {};
  std::vector<LayerStatistics> layers = {};  ///< empty: no weights were looked at
};

/// Of a trained model, by one forward pass over the first windows of `validation` with every intermediate value kept.
LintReport lint_weights(const Transformer& model, const Loader& validation);

/// Of a report that shows what gates do in each layer: how far one by SiLU is from a share of "open".
std::vector<Finding> lint_gates(const ModelConfig& config, const std::vector<LayerStatistics>& layers);

/// Replaces a file whole or not at all: {"layers":[...]}, of lint_weights.
void write_layers(const std::string& path, const std::vector<LayerStatistics>& layers);

/// All lints of a run's folder that are not silenced: of its config, its metrics, and of its newest checkpoint's
/// weights where its data is still there.
LintReport lint_run(const std::string& folder);

/// Without those that run.silence names: what is told.
std::vector<Finding> audible(std::vector<Finding> findings, const Config& config);

/// What is wrong with a text of ids ("E12, E20"): one that no lint has, or one that may not be silenced. "" = nothing.
std::string fault_of_silence(std::string_view ids);

}  // namespace minillm
