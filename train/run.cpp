// How a run starts and how it resumes.

#include "train/run.h"

#include "core/log.h"
#include "core/parallel.h"
#include "core/text.h"
#include "optim/schedule.h"
#include "train/checkpoint.h"
#include "train/complete_config.h"
#include "train/config_checks.h"
#include "train/initial_weights.h"
#include "train/lint.h"
#include "train/run_folder.h"
#include "train/run_loop.h"

#include <algorithm>
#include <filesystem>

namespace minillm {

namespace {

void use_threads(const TrainConfig& config) {
  set_num_threads(config.threads);
}

/// Whether a resumed run must keep a setting: with another, the weights or the order of samples would mean nothing.
bool is_kept(std::string_view key) {
  return key.starts_with("model.") || key == "data.seq_len" || key == "data.order" || key == "data.objective" ||
         key == "train.dtype" || key == "train.seed" || key == "train.batch_size" || key == "train.micro_batch_size";
}

void check_kept(const Config& before, const Config& after) {
  for (const ConfigChange& change : diff(before, after)) {
    if (is_kept(change.key)) {
      fail_input({.where = change.key,
                  .what = "a resumed run keeps its model, data and batches",
                  .found = change.after,
                  .expected = change.before,
                  .hint = "start another run, with --init to take over the weights"});
    }
  }
}

/// Prints what a resume changes. For when nothing can refuse it any more.
void log_changes(const Config& before, const Config& after, int64_t step) {
  for (const ConfigChange& change : diff(before, after)) {
    log_info("changed at resume: {} = {} (was {})", change.key, change.after, change.before);
  }
  // Where both still run, the last common step shows a difference; behind the old end, the step that comes next.
  const int64_t shown = std::max(step, std::min(before.train.steps, after.train.steps) - 1);
  const double planned = learning_rate(before.optim, shown, before.train.steps);
  const double now = learning_rate(after.optim, shown, after.train.steps);
  if (planned != now && before.optim.lr == after.optim.lr) {
    log_warning("the {} schedule runs otherwise now: the learning rate of step {} is {:.3g}, it would have been {:.3g}",
                after.optim.schedule, shown, now, planned);
  }
}

/// How the weights of the best checkpoint are used, or "" when it is missing or damaged.
std::string advice_of_best(const std::string& folder) {
  try {
    return "start another run, with --init " + shell_word(Checkpoint(best_checkpoint_path(folder)).path());
  } catch (const Error&) {
    return "";
  }
}

/// Starting again cuts the metrics and replaces best.h5: only right where there has been no checkpoint yet.
void check_may_start_again(const std::string& folder) {
  if (!awaits_first_checkpoint(folder)) {
    fail_input({.where = folder,
                .what = checkpoint_steps(folder).empty()
                            ? "its folder checkpoints is missing, so it cannot go on"
                            : "no checkpoint of the run's steps can be read, so it cannot go on",
                .hint = advice_of_best(folder)});
  }
}

void check_same_data(const Checkpoint& checkpoint, const TokenFile& data) {
  const std::string& expected = checkpoint.text("data_sha256");
  if (checkpoint.text("tokenizer_sha256") != data.tokenizer_sha256 || expected != data.sha256) {
    fail_input({.where = data.path,
                .what = "is not the data this run was trained on",
                .found = "SHA-256 " + data.sha256,
                .expected = expected,
                .hint = "resume with the original file, or start another run with --init"});
  }
}

/// What can be done with the run that stands in the folder, or "".
std::string advice_for_existing(const std::string& folder) {
  switch (continuation_of(folder)) {
    case Continuation::resume: return "go on with --resume " + shell_word(folder);
    case Continuation::weights:
      return "start from its weights with --init " + shell_word(folder) + " and another --out";
    case Continuation::none: break;
  }
  return "";
}

}  // namespace

RunEnd start_run(const StartRequest& request) {
  LoadedConfig loaded = request.loaded;
  std::vector<std::string> inputs = loaded.files;
  inputs.push_back(request.init);
  if (loaded.config.data.path != "synthetic") {
    inputs.push_back(loaded.config.data.path);
  }
  TokenFile data = open_data_of(loaded);
  complete_config(loaded, &data);
  use_threads(loaded.config.train);
  for (const std::string& notice : config_notices(loaded.config)) {
    log_warning("{}", notice);
  }
  log_findings(audible(lint_config(loaded.config), loaded.config));
  const Config config = loaded.config;
  const ConfigOrigins origins = loaded.origins;
  // Everything that can be wrong is checked before the folder is made: a refused run leaves nothing behind.
  RunLoop run(std::move(loaded), std::move(data), request.session);
  const std::string init = load_initial_weights(run.model(), {config, origins}, run.data(), request.init);
  const OwnedFolder folder = create_run_folder(
      {.folder = config.run.out, .force = request.force, .inputs = inputs, .advice = advice_for_existing});
  if (!folder.moved_to.empty()) {
    log_info("the old run is now {}", folder.moved_to);
  }
  if (!request.init.empty()) {
    run.save_start(init);
  }
  write_run_config(config.run.out, to_toml(config, origins));  // last: with it the folder is one to resume
  return run.execute();
}

RunEnd resume_run(const ResumeRequest& request) {
  check_run_folder(request.folder);
  for (const std::string& setting : request.overrides) {
    if (setting.starts_with("run.name=") || setting.starts_with("run.out=")) {
      fail_input({.where = setting.substr(0, setting.find('=')),
                  .what = "a resumed run keeps its name and folder",
                  .hint = "move the folder itself, then resume it under its new name"});
    }
  }
  const FileDescriptor lock = lock_run_folder(request.folder);
  const std::optional<Checkpoint> checkpoint = newest_checkpoint(request.folder);
  if (checkpoint) {
    checkpoint->check_can_go_on();
  } else {
    check_may_start_again(request.folder);
  }
  // config.toml holds the settings of the last session, which a kill may have ended before its first checkpoint.
  const std::string file = config_path(request.folder);
  LoadedConfig before = checkpoint ? parse_config(checkpoint->config(), checkpoint->path()) : load_config(file);
  check_kept(before.config, with_overrides(before.config, request.overrides));  // before keys are compared in pairs
  LoadedConfig loaded = load_config(file, request.overrides);
  TokenFile data = open_data_of(loaded);
  if (checkpoint) {
    check_same_data(*checkpoint, data);
  }
  complete_config(before, &data);
  complete_config(loaded, &data);
  before.config.run.out = request.folder;  // the folder may have been moved since
  loaded.config.run.out = request.folder;
  if (checkpoint && checkpoint->step() > loaded.config.train.steps) {
    fail_input({.where = "train.steps",
                .what = fmt::format("the run has done {} updates already", checkpoint->step()),
                .found = fmt::format("{}", loaded.config.train.steps),
                .expected = fmt::format("{} or more", checkpoint->step()),
                .hint = "eval and generate take --checkpoint N"});
  }
  check_kept(before.config, loaded.config);
  const bool done = checkpoint && checkpoint->step() == loaded.config.train.steps;
  if (done && std::filesystem::exists(summary_path(request.folder))) {
    clean_checkpoints(request.folder);
    log_info("{} is finished already: {} of {} steps; train.steps=N goes on", request.folder, checkpoint->step(),
             loaded.config.train.steps);
    return RunEnd::finished;
  }
  use_threads(loaded.config.train);
  const Config after = loaded.config;
  const std::string config_text = to_toml(after, loaded.origins);
  RunLoop run(std::move(loaded), std::move(data), request.session);
  if (checkpoint) {
    run.go_on_from(*checkpoint, !diff(before.config, after).empty());
    log_info("resumes {} after {} updates", checkpoint->path(), checkpoint->step());
  } else {
    log_info("{} has no valid checkpoint yet: starts at step 0", request.folder);
  }
  write_run_config(request.folder, config_text);
  log_changes(before.config, after, checkpoint ? checkpoint->step() : 0);
  return run.execute();
}

}  // namespace minillm
