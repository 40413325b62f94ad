#include "suite/run_groups.h"

#include "core/text.h"
#include "suite/run_settings.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace minillm {

namespace {

std::string settings_of(const RunRecord& run) {
  return settings_text(run.config, [](const ConfigKey& key) { return !is_repeat_setting(key.path()); });
}

/// Whether two runs learned from the same data, as far as it is known: a run that goes on has no unigram loss yet.
bool is_same_data(const RunRecord& a, const RunRecord& b) {
  const double one = a.summary.unigram_loss;
  const double other = b.summary.unigram_loss;
  return !std::isfinite(one) || !std::isfinite(other) || one == other;
}

/// The final validation loss of every seed, of its first run that did all its steps; and how far repeats part.
struct FinalLosses {
  std::vector<double> of_seeds;
  double same_seed_difference = not_known;
};

FinalLosses final_losses(const std::vector<RunRecord>& runs, const std::vector<size_t>& group) {
  FinalLosses losses;
  std::map<uint64_t, double> first;
  for (const size_t index : group) {
    const double loss = runs[index].final_val_loss();
    if (!std::isfinite(loss)) {
      continue;
    }
    const auto [at, is_new] = first.emplace(runs[index].seed(), loss);
    if (is_new) {
      losses.of_seeds.push_back(loss);
    } else {
      losses.same_seed_difference = std::fmax(losses.same_seed_difference, std::abs(loss - at->second));
    }
  }
  return losses;
}

double mean_of(const std::vector<double>& values) {
  double mean = values.empty() ? not_known : 0;
  for (const double value : values) {
    mean += value / static_cast<double>(values.size());
  }
  return mean;
}

constexpr int64_t kept_stride = 5;  // of steps in the metrics of a record
constexpr size_t fewest_losses = 8;

/// Of the sample; NaN of fewer than two.
double deviation_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) {
    squares += (value - mean) * (value - mean);
  }
  return values.size() < 2 ? not_known : std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace

double loss_oscillation(const std::vector<TrainRecord>& train) {
  std::vector<double> steps;
  std::vector<double> losses;
  for (const TrainRecord& record : train) {
    const bool is_late = 2 * record.step > train.back().step;
    if (is_late && record.step % kept_stride == 0 && std::isfinite(record.loss)) {
      steps.push_back(static_cast<double>(record.step));
      losses.push_back(record.loss);
    }
  }
  if (losses.size() < fewest_losses) {
    return not_known;
  }
  const double mean_step = mean_of(steps);
  const double mean_loss = mean_of(losses);
  double products = 0;
  double squares = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    products += (steps[i] - mean_step) * (losses[i] - mean_loss);
    squares += (steps[i] - mean_step) * (steps[i] - mean_step);
  }
  const double slope = products / squares;
  double residuals = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const double residual = losses[i] - mean_loss - slope * (steps[i] - mean_step);
    residuals += residual * residual;
  }
  return std::sqrt(residuals / static_cast<double>(losses.size() - 2));  // the line took two
}

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

NoiseFloor noise_of(const std::vector<RunRecord>& runs, const std::vector<size_t>& group) {
  for (const size_t index : group) {
    if (runs[index].summary.stalled || runs[index].summary.diverged) {
      return {};
    }
  }
  const FinalLosses losses = final_losses(runs, group);
  if (losses.of_seeds.size() < 2) {
    return {.of = group_name(runs[group.front()]),
            .seeds = static_cast<int64_t>(losses.of_seeds.size()),
            .same_seed_difference = losses.same_seed_difference};
  }
  const auto [least, most] = std::minmax_element(losses.of_seeds.begin(), losses.of_seeds.end());
  return {.of = group_name(runs[group.front()]),
          .seeds = static_cast<int64_t>(losses.of_seeds.size()),
          .sigma = deviation_of(losses.of_seeds),
          .range = *most - *least,
          .same_seed_difference = losses.same_seed_difference};
}

RunGroup summarize_group(const std::vector<RunRecord>& runs, std::vector<size_t> members, std::vector<double> alone) {
  const FinalLosses losses = final_losses(runs, members);
  RunGroup group{.name = group_name(runs[members.front()]), .runs = std::move(members), .noise = {}};
  group.seeds = static_cast<int64_t>(losses.of_seeds.size());
  group.val_loss = mean_of(losses.of_seeds);
  group.val_sd = deviation_of(losses.of_seeds);
  group.parameters = runs[group.runs.front()].summary.parameters;
  std::vector<double> beside;
  std::vector<double> oscillations;
  for (const size_t index : group.runs) {
    const Summary& summary = runs[index].summary;
    beside.push_back(summary.tokens_per_s);
    group.grad_norm_max_first_100 = std::fmax(group.grad_norm_max_first_100, summary.grad_norm_max_first_100);
    const bool has_ended = runs[index].has_ended();
    group.ended += has_ended ? 1 : 0;
    if (const double oscillation = loss_oscillation(runs[index].metrics.train); std::isfinite(oscillation)) {
      oscillations.push_back(oscillation);
    }
    group.failed += summary.end == "failed" ? 1 : 0;
    group.stalled += has_ended && summary.stalled ? 1 : 0;
    group.diverged += has_ended && summary.diverged ? 1 : 0;
  }
  group.loss_oscillation = mean_of(oscillations);
  group.speeds = std::move(alone);
  group.tokens_per_s = median(group.speeds.empty() ? beside : group.speeds);
  return group;
}

std::string group_name(const RunRecord& run) {
  const std::string suffix = fmt::format("-seed{}", run.seed());
  const std::string& name = run.name();
  return run.suite + (name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : name);
}

}  // namespace minillm
