#include "suite/comparison.h"

#include "core/text.h"
#include "nn/match.h"
#include "suite/comparison_lints.h"
#include "suite/run_groups.h"
#include "suite/run_settings.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace minillm {

namespace {

constexpr double most_difference = 1;  // per cent of the parameters that two compared models may differ by
constexpr double swinging = 2;         // times the reference's oscillation: told beside the verdict
constexpr double wide = 3;             // times sigma: a group whose own seeds spread wider is no matter of that noise

void form_groups(Comparison& comparison, const ComparisonPlan& plan) {
  for (std::vector<size_t>& members : groups_of(comparison.runs)) {
    const auto alone = plan.speeds.find(group_name(comparison.runs[members.front()]));
    comparison.groups.push_back(summarize_group(comparison.runs, std::move(members),
                                                alone == plan.speeds.end() ? std::vector<double>{} : alone->second));
  }
  const auto rank = [&](const RunGroup& group) { return std::find(plan.order.begin(), plan.order.end(), group.name); };
  std::stable_sort(comparison.groups.begin(), comparison.groups.end(),
                   [&](const RunGroup& a, const RunGroup& b) { return rank(a) < rank(b); });
}

size_t index_of(const std::vector<RunGroup>& groups, const std::string& name) {
  const auto at = std::find_if(groups.begin(), groups.end(), [&](const RunGroup& group) { return group.name == name; });
  return static_cast<size_t>(at - groups.begin());
}

/// What groups without a plan are compared with: the one asked for, else baseline, else the first.
size_t common_reference(const std::vector<RunGroup>& groups, const std::string& asked_for) {
  const size_t common = index_of(groups, asked_for.empty() ? "baseline" : asked_for);
  if (common < groups.size() || asked_for.empty()) {
    return common < groups.size() ? common : 0;
  }
  std::vector<std::string> names;
  for (const RunGroup& group : groups) {
    names.push_back(group.name);
  }
  const std::string near = did_you_mean(asked_for, names);
  fail_input({.where = "--reference",
              .what = "no group of runs has this name",
              .found = asked_for,
              .hint = near.empty() ? "the groups are " + join(names) : near});
}

/// The group of the plan's reference; its own where nothing is to be compared, or what was to be is not there.
void find_references(Comparison& comparison, const ComparisonPlan& plan) {
  std::vector<RunGroup>& groups = comparison.groups;
  const size_t common = common_reference(groups, plan.reference);
  for (size_t index = 0; index < groups.size(); ++index) {
    const auto planned = plan.references.find(groups[index].name);
    const bool is_planned = plan.reference.empty() && planned != plan.references.end();
    const size_t reference = is_planned ? index_of(groups, planned->second) : common;
    groups[index].reference = reference < groups.size() ? reference : index;
    if (reference == groups.size()) {
      groups[index].missing_reference = planned->second;
    }
  }
}

/// The noise floor that a group is judged by: of what it is compared with; else of the runs given for it; else of the
/// first group's reference. The first with enough seeds counts, the others only if they learned from as many tokens of
/// the same data; where none has enough, the first that is known at all.
NoiseFloor find_noise_floor(const Comparison& comparison, const std::vector<RunRecord>& given,
                            const std::vector<std::vector<size_t>>& given_groups, const RunGroup& group) {
  const RunGroup& reference = comparison.groups[group.reference];
  const RunRecord& run = comparison.runs[reference.runs.front()];
  std::vector<NoiseFloor> floors = {noise_of(comparison.runs, reference.runs)};
  for (const std::vector<size_t>& members : given_groups) {
    if (difference_of_training(given[members.front()], run).empty()) {
      floors.push_back(noise_of(given, members));
    }
  }
  const RunGroup& common = comparison.groups[comparison.groups.front().reference];
  if (difference_of_training(comparison.runs[common.runs.front()], run).empty()) {
    floors.push_back(noise_of(comparison.runs, common.runs));
  }
  const auto enough = std::find_if(floors.begin(), floors.end(), [](const NoiseFloor& f) { return f.is_enough(); });
  const auto known = std::find_if(floors.begin(), floors.end(), [](const NoiseFloor& f) { return f.is_known(); });
  return enough != floors.end() ? *enough : (known != floors.end() ? *known : floors.front());
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
  std::string text =
      fmt::format("not compared: {:+.2f} % parameters, {} % is too much", group.parameter_difference, most_difference);
  try {
    const WidthMatch match = match_parameters(run.config.model, reference.parameters);
    text += fmt::format("; model.d_ff={} would match to {:+.2f} %", match.d_ff, match.percent);
  } catch (const Error&) {
    text += "; no model.d_ff makes it match";
  }
  return text;
}

/// What stands beside a verdict.
std::string flags_of(const RunGroup& group, const RunGroup& reference) {
  std::vector<std::string> flags;
  if (group.stalled > 0) {
    flags.push_back(fmt::format("{} of {} stalled at the unigram loss", group.stalled, group.ended));
  }
  if (group.diverged > 0) {
    flags.push_back(fmt::format("{} of {} diverged", group.diverged, group.ended));
  }
  if (group.val_sd > wide * group.noise.sigma && group.noise.is_known()) {
    flags.push_back(fmt::format("its own seeds spread over {:.0f} sigma", group.val_sd / group.noise.sigma));
  }
  if (group.loss_oscillation > swinging * reference.loss_oscillation) {
    flags.push_back(
        fmt::format("its loss swings {:.1f} times as wide", group.loss_oscillation / reference.loss_oscillation));
  }
  return flags.empty() ? "" : "; " + join(flags);
}

struct Judgement {
  Verdict verdict;
  std::string sentence;
};

/// Of two groups with final losses.
Judgement judge(const RunGroup& reference, const RunGroup& group) {
  const NoiseFloor& noise = group.noise;
  const bool are_single = reference.seeds == 1 && group.seeds == 1;
  const double threshold = are_single ? noise.of_single_runs() : noise.of_means();
  const double size = std::abs(group.delta);
  const std::string amount = fmt::format("{:.4f} nats {}", size, group.delta < 0 ? "better" : "worse");
  if (!noise.is_enough()) {
    return {Verdict::no_conclusion, noise.is_known()
                                        ? fmt::format("no conclusion: {}, but the noise floor rests on {} seeds of {}",
                                                      amount, noise.seeds, noise.of)
                                        : fmt::format("no conclusion: {}, but the noise floor is not known", amount)};
  }
  // What spreads wider than the noise floor must stand out of its own spread too.
  const double own = std::isfinite(group.val_sd) ? 3 * group.val_sd : 0;
  if (size < std::max(threshold, own)) {
    return {Verdict::no_conclusion,
            own > threshold ? fmt::format("no conclusion: {} is below 3 times its own spread, {:.4f}", amount, own)
                            : fmt::format("no conclusion: {} is below {} sigma, {:.4f}", amount,
                                          are_single ? "4.24" : "3", threshold)};
  }
  const bool is_clear = size >= noise.of_single_runs();
  return {group.delta < 0 ? Verdict::better : Verdict::worse,
          fmt::format("{} than {} by {:.4f} nats, {:.1f} sigma{}", group.delta < 0 ? "better" : "worse", reference.name,
                      size, std::abs(group.delta_sigmas), is_clear ? "" : ": two single runs would not show it")};
}

/// Where one of the two lacks a final loss.
Judgement judge_without_loss(const RunGroup& reference, const RunGroup& group) {
  if (!group.has_ended() || !reference.has_ended()) {
    return {Verdict::unfinished, group.has_ended() ? reference.name + " goes on" : "its runs go on"};
  }
  if (group.failed > 0 && reference.failed == 0 && std::isfinite(reference.val_loss)) {
    return {Verdict::worse,
            fmt::format("{} of {} runs failed where {} trains", group.failed, group.ended, reference.name)};
  }
  return {Verdict::no_conclusion, "no conclusion: a final validation loss is missing"};
}

Judgement compare_group(const Comparison& comparison, RunGroup& group) {
  const RunGroup& reference = comparison.groups[group.reference];
  if (!group.missing_reference.empty()) {
    return {Verdict::unfinished, group.missing_reference + ", which it is compared with, was not run"};
  }
  if (&reference == &group) {
    return {Verdict::reference, "what others are compared with"};
  }
  group.changes = diff(comparison.runs[reference.runs.front()].config, comparison.runs[group.runs.front()].config);
  std::erase_if(group.changes, [](const ConfigChange& change) { return is_repeat_setting(change.key); });
  const double parameters = static_cast<double>(reference.parameters);
  group.parameter_difference = 100 * (static_cast<double>(group.parameters) - parameters) / parameters;
  group.delta = group.val_loss - reference.val_loss;
  group.delta_sigmas = group.noise.is_known() ? group.delta / group.noise.sigma : not_known;
  const std::string reason = obstacle(comparison, group, reference);
  if (!reason.empty()) {
    return {Verdict::refused, reason};
  }
  const bool is_whole = group.has_ended() && reference.has_ended() && group.failed == 0 && reference.failed == 0;
  return is_whole && std::isfinite(group.delta) ? judge(reference, group) : judge_without_loss(reference, group);
}

}  // namespace

double NoiseFloor::of_single_runs() const {
  return 3 * std::numbers::sqrt2 * sigma;
}

double Comparison::unigram_loss() const {
  for (const RunRecord& run : runs) {
    if (std::isfinite(run.summary.unigram_loss)) {
      return run.summary.unigram_loss;
    }
  }
  return not_known;
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
  form_groups(comparison, plan);
  find_references(comparison, plan);
  const std::vector<std::vector<size_t>> given_groups = groups_of(plan.noise_floor);
  for (RunGroup& group : comparison.groups) {
    group.noise = find_noise_floor(comparison, plan.noise_floor, given_groups, group);
  }
  for (RunGroup& group : comparison.groups) {
    Judgement judgement = compare_group(comparison, group);
    group.verdict = judgement.verdict;
    group.sentence = judgement.sentence + flags_of(group, comparison.groups[group.reference]);
  }
  comparison.noise = comparison.groups.front().noise;
  comparison.findings = lint_comparison(comparison);
  return comparison;
}

}  // namespace minillm
