#include "suite/comparison.h"

#include "core/text.h"
#include "nn/match.h"
#include "suite/comparison_lints.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

namespace minillm {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double most_difference = 1;  // per cent of the parameters that two compared models may differ by

/// What two runs may differ in and still be repeats of each other. The data are told apart by their unigram loss: a
/// file may have moved.
bool is_free(const ConfigKey& key) {
  const std::string& name = key.name;
  return key.section == "run" || key.path() == "data.path" ||
         (key.section == "train" && (name == "seed" || name == "threads" || name == "checkpoint_every" ||
                                     name == "keep_checkpoints" || name == "sample_every" || name == "max_minutes"));
}

/// The settings that make a run's group.
std::string settings_of(const RunRecord& run) {
  Config config = run.config;
  std::string text;
  for (const ConfigKey& key : config_keys()) {
    if (!is_free(key)) {
      text += toml_text(key, config) + "\n";
    }
  }
  return text;
}

/// Whether two runs learned from the same data, as far as it is known: a run that goes on has no unigram loss yet.
bool is_same_data(const RunRecord& a, const RunRecord& b) {
  const double one = a.summary.unigram_loss;
  const double other = b.summary.unigram_loss;
  return !std::isfinite(one) || !std::isfinite(other) || one == other;
}

/// Runs that differ in nothing but their seed, in the order of each group's first.
std::vector<std::vector<size_t>> groups_of(const std::vector<RunRecord>& runs) {
  std::vector<std::vector<size_t>> groups;
  std::vector<std::string> settings;
  for (size_t index = 0; index < runs.size(); ++index) {
    const std::string own = settings_of(runs[index]);
    size_t at = 0;
    while (at < groups.size() && (settings[at] != own || !is_same_data(runs[groups[at].front()], runs[index]))) {
      ++at;
    }
    if (at == groups.size()) {
      groups.emplace_back();
      settings.push_back(own);
    }
    groups[at].push_back(index);
  }
  return groups;
}

/// "layernorm-seed3" -> "layernorm"
std::string name_without_seed(const RunRecord& run) {
  const std::string suffix = fmt::format("-seed{}", run.seed());
  return run.name().ends_with(suffix) ? run.name().substr(0, run.name().size() - suffix.size()) : run.name();
}

struct Spread {
  double mean = nan;
  double deviation = nan;  // of the sample
  double range = nan;
};

Spread spread_of(const std::vector<double>& values) {
  if (values.empty()) {
    return {};
  }
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  Spread spread{.mean = 0, .deviation = nan, .range = *most - *least};
  for (const double value : values) {
    spread.mean += value / static_cast<double>(values.size());
  }
  if (values.size() >= 2) {
    double squares = 0;
    for (const double value : values) {
      squares += (value - spread.mean) * (value - spread.mean);
    }
    spread.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  }
  return spread;
}

/// The final validation loss of every seed, of its first run that is over; and how far repeats of a seed part.
struct FinalLosses {
  std::vector<double> of_seeds;
  double repeats = nan;
};

FinalLosses final_losses(const std::vector<const RunRecord*>& runs) {
  FinalLosses losses;
  std::map<uint64_t, double> first;
  for (const RunRecord* run : runs) {
    const double loss = run->summary.final_val_loss;
    if (!run->is_over() || !std::isfinite(loss)) {
      continue;
    }
    const auto [at, is_new] = first.emplace(run->seed(), loss);
    if (is_new) {
      losses.of_seeds.push_back(loss);
    } else {
      losses.repeats = std::fmax(losses.repeats, std::abs(loss - at->second));
    }
  }
  return losses;
}

/// "trained on ..." where the two learned from other data or another number of tokens, or "".
std::string difference_of_training(const RunRecord& run, const RunRecord& other) {
  if (!is_same_data(run, other)) {
    return fmt::format("trained on other data, of unigram loss {:.4f} instead of {:.4f}", run.summary.unigram_loss,
                       other.summary.unigram_loss);
  }
  const int64_t tokens = run.config.train.steps * run.tokens_per_step();
  const int64_t other_tokens = other.config.train.steps * other.tokens_per_step();
  return tokens == other_tokens
             ? ""
             : fmt::format("trained on {} tokens instead of {}", thousands(tokens), thousands(other_tokens));
}

NoiseFloor noise_of(const std::string& name, const std::vector<const RunRecord*>& runs) {
  const FinalLosses losses = final_losses(runs);
  const Spread spread = spread_of(losses.of_seeds);
  return {.of = name,
          .seeds = static_cast<int64_t>(losses.of_seeds.size()),
          .sigma = losses.of_seeds.size() < 2 ? 0 : spread.deviation,
          .range = losses.of_seeds.empty() ? 0 : spread.range,
          .repeats = losses.repeats};
}

std::vector<const RunRecord*> pointers(const std::vector<RunRecord>& runs, const std::vector<size_t>& indices) {
  std::vector<const RunRecord*> chosen;
  for (const size_t index : indices) {
    chosen.push_back(&runs[index]);
  }
  return chosen;
}

void form_groups(Comparison& comparison, const std::vector<std::string>& order) {
  for (std::vector<size_t>& runs : groups_of(comparison.runs)) {
    const std::string name = name_without_seed(comparison.runs[runs.front()]);
    comparison.groups.push_back({.name = name, .runs = std::move(runs), .sentence = {}, .changes = {}});
  }
  const auto rank = [&](const RunGroup& group) { return std::find(order.begin(), order.end(), group.name); };
  std::stable_sort(comparison.groups.begin(), comparison.groups.end(),
                   [&](const RunGroup& a, const RunGroup& b) { return rank(a) < rank(b); });
}

void summarize_group(const Comparison& comparison, const ComparisonPlan& plan, RunGroup& group) {
  const std::vector<const RunRecord*> runs = pointers(comparison.runs, group.runs);
  const Spread spread = spread_of(final_losses(runs).of_seeds);
  group.val_loss = spread.mean;
  group.val_sd = spread.deviation;
  group.parameters = runs.front()->summary.parameters;
  std::vector<double> speeds;
  for (const RunRecord* run : runs) {
    const Summary& summary = run->summary;
    speeds.push_back(summary.tokens_per_s);
    group.grad_norm_max_first_100 = std::fmax(group.grad_norm_max_first_100, summary.grad_norm_max_first_100);
    group.over += run->is_over() ? 1 : 0;
    group.stalled += run->is_over() && summary.stalled ? 1 : 0;
    group.diverged += run->is_over() && summary.diverged ? 1 : 0;
  }
  const auto alone = plan.speeds.find(group.name);
  group.speed_measurements = alone == plan.speeds.end() ? 0 : static_cast<int64_t>(alone->second.size());
  group.tokens_per_s = median(alone == plan.speeds.end() ? speeds : alone->second);
}

size_t index_of(const std::vector<RunGroup>& groups, const std::string& name) {
  const auto at = std::find_if(groups.begin(), groups.end(), [&](const RunGroup& group) { return group.name == name; });
  return static_cast<size_t>(at - groups.begin());
}

void find_references(Comparison& comparison, const ComparisonPlan& plan) {
  std::vector<RunGroup>& groups = comparison.groups;
  const std::string& wanted = plan.reference.empty() ? "baseline" : plan.reference;
  size_t common = index_of(groups, wanted);
  if (common == groups.size()) {
    std::vector<std::string> names;
    for (const RunGroup& group : groups) {
      names.push_back(group.name);
    }
    if (!plan.reference.empty()) {
      const std::string near = did_you_mean(wanted, names);
      fail_input({.where = "--reference",
                  .what = "no group of runs has this name",
                  .found = wanted,
                  .hint = near.empty() ? "the groups are " + join(names) : near});
    }
    common = 0;
  }
  for (size_t index = 0; index < groups.size(); ++index) {
    const auto planned = plan.references.find(groups[index].name);
    const bool is_planned = plan.reference.empty() && planned != plan.references.end();
    const size_t reference = is_planned ? index_of(groups, planned->second) : common;
    groups[index].reference = reference == groups.size() ? index : reference;  // whose runs are not there yet: none
  }
}

/// Of the runs given for it, as far as they learned from as many tokens of the same data; else of the group that has
/// enough seeds and trained; else of the reference.
NoiseFloor find_noise_floor(const Comparison& comparison, const ComparisonPlan& plan) {
  NoiseFloor best;
  for (const std::vector<size_t>& group : groups_of(plan.noise_floor)) {
    const RunRecord& first = plan.noise_floor[group.front()];
    const NoiseFloor own = noise_of(name_without_seed(first), pointers(plan.noise_floor, group));
    const bool counts = own.is_known() && difference_of_training(first, comparison.runs.front()).empty();
    best = counts && own.seeds > best.seeds ? own : best;
  }
  if (best.is_known()) {
    return best;
  }
  for (const RunGroup& group : comparison.groups) {
    const NoiseFloor own = noise_of(group.name, pointers(comparison.runs, group.runs));
    const bool has_trained = group.stalled == 0 && group.diverged == 0;
    const bool is_reference = &group == &comparison.groups[group.reference];
    const bool counts = is_reference || own.is_enough();
    if (has_trained && counts && own.is_known() && own.seeds > best.seeds) {
      best = own;
    }
  }
  return best;
}

/// Why the two cannot be compared, or "".
std::string obstacle(const Comparison& comparison, const RunGroup& group, const RunGroup& reference) {
  const RunRecord& run = comparison.runs[group.runs.front()];
  const std::string difference = difference_of_training(run, comparison.runs[reference.runs.front()]);
  if (!difference.empty()) {
    return "not compared: " + difference;
  }
  if (std::abs(group.parameter_difference) < most_difference) {
    return "";
  }
  std::string text = fmt::format("not compared: {:+.2f} % parameters, {} % is too much", group.parameter_difference,
                                 most_difference);
  try {
    const WidthMatch match = match_parameters(run.config.model, reference.parameters);
    text += fmt::format("; model.d_ff={} would match to {:+.2f} %", match.d_ff, match.percent);
  } catch (const Error&) {
    text += "; no model.d_ff makes it match";
  }
  return text;
}

std::string flags_of(const RunGroup& group) {
  std::vector<std::string> flags;
  if (group.stalled > 0) {
    flags.push_back(fmt::format("{} of {} stalled at the unigram loss", group.stalled, group.over));
  }
  if (group.diverged > 0) {
    flags.push_back(fmt::format("{} of {} diverged", group.diverged, group.over));
  }
  return flags.empty() ? "" : "; " + join(flags);
}

void judge(const NoiseFloor& noise, const RunGroup& reference, RunGroup& group) {
  const double size = std::abs(group.delta);
  const std::string direction = group.delta < 0 ? "better" : "worse";
  if (!noise.is_known()) {
    group.verdict = Verdict::no_conclusion;
    group.sentence = fmt::format("no conclusion: {:.4f} nats {}, but the noise floor is not known", size, direction);
  } else if (size < noise.of_run()) {
    group.verdict = Verdict::no_conclusion;
    group.sentence = fmt::format("no conclusion: {:.4f} nats {} is below 3 sigma, {:.4f}", size, direction,
                                 noise.of_run());
  } else {
    group.verdict = group.delta < 0 ? Verdict::better : Verdict::worse;
    const bool is_clear = size >= noise.of_difference();
    group.sentence = fmt::format("{} than {} by {:.4f} nats, {:.1f} sigma{}", direction, reference.name, size,
                                 std::abs(group.delta_sigmas),
                                 is_clear ? "" : ": above 3 of a run, below 4.24 of two single runs");
  }
  group.sentence += flags_of(group);
}

void compare_group(const Comparison& comparison, RunGroup& group) {
  const RunGroup& reference = comparison.groups[group.reference];
  if (&reference == &group) {
    group.verdict = Verdict::reference;
    group.sentence = "what others are compared with" + flags_of(group);
    return;
  }
  group.changes = diff(comparison.runs[reference.runs.front()].config, comparison.runs[group.runs.front()].config);
  std::erase_if(group.changes, [](const ConfigChange& change) {
    return change.key.starts_with("run.") || change.key == "train.seed" || change.key == "data.path";
  });
  const double parameters = static_cast<double>(reference.parameters);
  group.parameter_difference = 100 * (static_cast<double>(group.parameters) - parameters) / parameters;
  group.delta = group.val_loss - reference.val_loss;
  group.delta_sigmas = comparison.noise.is_known() ? group.delta / comparison.noise.sigma : nan;
  const std::string reason = obstacle(comparison, group, reference);
  if (!reason.empty()) {
    group.verdict = Verdict::refused;
    group.sentence = reason + flags_of(group);
  } else if (std::isfinite(group.delta)) {
    judge(comparison.noise, reference, group);
  } else {
    const bool is_over = group.over == static_cast<int64_t>(group.runs.size());
    group.verdict = is_over ? Verdict::worse : Verdict::unfinished;
    group.sentence = (is_over ? "has no final validation loss" : "its runs go on") + flags_of(group);
  }
}

}  // namespace

double NoiseFloor::of_difference() const {
  return 3 * std::numbers::sqrt2 * sigma;
}

std::string_view verdict_word(Verdict verdict) {
  switch (verdict) {
    case Verdict::reference: return "reference";
    case Verdict::better: return "better";
    case Verdict::worse: return "worse";
    case Verdict::no_conclusion: return "no_conclusion";
    case Verdict::refused: return "refused";
    case Verdict::unfinished: break;
  }
  return "unfinished";
}

Comparison compare(std::vector<RunRecord> runs, const ComparisonPlan& plan) {
  check(!runs.empty(), "a comparison needs runs");
  Comparison comparison{.title = plan.title, .runs = std::move(runs), .groups = {}, .noise = {}, .findings = {}};
  form_groups(comparison, plan.order);
  for (RunGroup& group : comparison.groups) {
    summarize_group(comparison, plan, group);
  }
  find_references(comparison, plan);
  comparison.noise = find_noise_floor(comparison, plan);
  for (RunGroup& group : comparison.groups) {
    compare_group(comparison, group);
  }
  comparison.findings = lint_comparison(comparison);
  return comparison;
}

}  // namespace minillm
