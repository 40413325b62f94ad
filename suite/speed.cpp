#include "suite/speed.h"

#include "core/json_object.h"
#include "core/log.h"
#include "core/parallel.h"
#include "core/text.h"
#include "suite/run_settings.h"
#include "train/bench.h"
#include "train/line_log.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace minillm {

namespace {

constexpr BenchOptions one_measurement = {.warmup_steps = 3, .steps = 8};
constexpr int most_attempts = 3;

std::string speeds_path(const std::string& out) {
  return out + "/speed.jsonl";
}

/// What a step's work depends on.
bool costs_time(const ConfigKey& key) {
  const std::string& name = key.name;
  return key.section == "model" || name == "seq_len" || name == "objective" || name == "batch_size" ||
         name == "micro_batch_size" || name == "dtype" || name == "kernels" || name == "ops" || name == "recompute";
}

/// Variants whose steps do the same work, with a run of one of them.
struct SameWork {
  std::string work;
  const PlannedRun* run;
  std::vector<std::string> variants;
};

std::vector<SameWork> groups_of(const Plan& plan) {
  std::vector<SameWork> groups;
  for (const PlannedRun& run : plan.runs) {
    const std::string work = settings_text(run.complete, costs_time);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const SameWork& other) { return other.work == work; });
    if (group == groups.end()) {
      group = groups.insert(groups.end(), {work, &run, {}});
    }
    if (std::find(group->variants.begin(), group->variants.end(), run.variant) == group->variants.end()) {
      group->variants.push_back(run.variant);
    }
  }
  return groups;
}

/// Measures again, some times, where the machine's own limit moved meanwhile: something ran beside it.
BenchResult measure(const LoadedConfig& loaded) {
  BenchResult result = bench(loaded, one_measurement);
  for (int attempt = 1; attempt < most_attempts && std::abs(result.fma_peak_change) > 0.1; ++attempt) {
    result = bench(loaded, one_measurement);
  }
  return result;
}

}  // namespace

RunEnd measure_speeds(const Plan& plan, bool (*stop_requested)()) {
  const std::vector<SameWork> groups = groups_of(plan);
  std::map<std::string, std::vector<double>> speeds = read_speeds(plan.out);
  LineLog log(speeds_path(plan.out), static_cast<int64_t>(read_text(speeds_path(plan.out)).size()));
  for (size_t round = 0; round < speed_repeats; ++round) {
    for (const SameWork& group : groups) {
      const TrainConfig& train = group.run->complete.train;
      if (stop_requested != nullptr && stop_requested()) {
        return RunEnd::stopped;
      }
      const auto lacks = [&](const std::string& variant) { return speeds[variant].size() <= round; };
      if (std::none_of(group.variants.begin(), group.variants.end(), lacks)) {
        continue;
      }
      set_num_threads(train.threads);
      const BenchResult result = measure(group.run->loaded);
      log_info("speed, {} of {}: {} tokens/s, {}", round + 1, speed_repeats,
               thousands(std::llround(result.tokens_per_second())), join(group.variants));
      for (const std::string& variant : group.variants) {
        if (!lacks(variant)) {
          continue;
        }
        JsonObject line;
        line.add("variant", variant);
        line.add("tokens_per_s", result.tokens_per_second());
        line.add("fma_peak_gflops", result.fma_peak_gflops);
        log.append(line.text());
        speeds[variant].push_back(result.tokens_per_second());
      }
    }
  }
  return RunEnd::finished;
}

std::map<std::string, std::vector<double>> read_speeds(const std::string& out) {
  std::map<std::string, std::vector<double>> speeds;
  for (const std::string& text : read_lines(speeds_path(out))) {
    const nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
    if (line.is_discarded() || !line.contains("variant") || !line.contains("tokens_per_s")) {
      fail_input({.where = speeds_path(out), .what = "not a line of speeds", .found = text});
    }
    speeds[line.at("variant").get<std::string>()].push_back(line.at("tokens_per_s").get<double>());
  }
  return speeds;
}

}  // namespace minillm
