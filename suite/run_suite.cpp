#include "suite/run_suite.h"

#include "core/log.h"
#include "core/memory.h"
#include "core/text.h"
#include "suite/speed.h"
#include "train/complete_config.h"
#include "train/run_folder.h"
#include "train/summary.h"

#include <filesystem>
#include <limits>
#include <optional>

namespace minillm {

namespace {

/// What a run does not depend on, and may have been changed in its folder since.
bool is_free(std::string_view key) {
  return key.starts_with("run.") || key == "train.threads";
}

void check_same_settings(const PlannedRun& run) {
  if (!is_begun(run.folder)) {
    return;
  }
  const Config there = load_without_data(config_path(run.folder), {}).config;
  for (const ConfigChange& change : diff(there, run.complete)) {
    if (!is_free(change.key)) {
      fail_input({.where = run.folder,
                  .what = "holds a run of other settings: " + change.key,
                  .found = change.before,
                  .expected = change.after,
                  .hint = "another --out, or move the folder away"});
    }
  }
}

/// How long runs take, from those that are over.
class TimeLeft {
 public:
  explicit TimeLeft(const Plan& plan) {
    for (const PlannedRun& run : plan.runs) {
      flops_left_ += run.flops;
    }
  }

  void count(const PlannedRun& run, const std::optional<Summary>& result) {
    flops_left_ -= run.flops;
    if (result && result->end == "finished") {
      seconds_done_ += result->seconds;
      flops_done_ += run.flops;
    }
  }

  /// NaN until a run is over.
  double seconds() const {
    return flops_done_ > 0 ? seconds_done_ / flops_done_ * flops_left_ : std::numeric_limits<double>::quiet_NaN();
  }

 private:
  double flops_left_ = 0;
  double flops_done_ = 0;
  double seconds_done_ = 0;
};

RunEnd start_or_resume(const PlannedRun& run, bool (*stop_requested)()) {
  restart_peak_memory();
  try {
    if (is_begun(run.folder)) {
      return resume_run({.folder = run.folder, .session = {.stop_requested = stop_requested}});
    }
    StartRequest request;
    request.loaded = run.loaded;
    request.session.stop_requested = stop_requested;
    return start_run(request);
  } catch (const Error& error) {
    const std::optional<Summary> result = result_of(run.folder);
    if (error.fault() != Fault::work || !result || result->end != "failed") {
      throw;
    }
    log_warning("{}", error.what());
    return RunEnd::finished;
  }
}

}  // namespace

bool is_begun(const std::string& folder) {
  return std::filesystem::exists(config_path(folder));
}

std::optional<Summary> result_of(const std::string& folder) {
  const std::optional<Summary> summary = read_summary(summary_path(folder));
  return summary && summary->end != "stopped" ? summary : std::nullopt;
}

RunEnd run_suite(const Plan& plan, bool (*stop_requested)()) {
  for (const PlannedRun& run : plan.runs) {
    check_same_settings(run);
  }
  std::filesystem::create_directories(plan.out);
  write_plan(plan);
  TimeLeft time_left(plan);
  for (const PlannedRun& run : plan.runs) {
    if (const std::optional<Summary> result = result_of(run.folder)) {
      time_left.count(run, result);
    }
  }
  size_t number = 0;
  for (const PlannedRun& run : plan.runs) {
    ++number;
    if (result_of(run.folder)) {
      continue;
    }
    log_info("==> run {} of {}, {}; {} left for all", number, plan.runs.size(), run.name(),
             duration_text(time_left.seconds()));
    if (start_or_resume(run, stop_requested) == RunEnd::stopped) {
      return RunEnd::stopped;
    }
    time_left.count(run, result_of(run.folder));
  }
  return measure_speeds(plan, stop_requested);
}

}  // namespace minillm
