#include "train/run.h"

#include "core/build_info.h"
#include "core/log.h"
#include "core/parallel.h"
#include "core/terminal.h"
#include "core/text.h"
#include "optim/finite.h"
#include "train/banner.h"
#include "train/checkpoint.h"
#include "train/evaluate.h"
#include "train/initial_weights.h"
#include "train/metrics.h"
#include "train/run_folder.h"
#include "train/samples.h"
#include "train/summary.h"
#include "train/trainer.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>

namespace minillm {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool due(int64_t every, int64_t updates) {
  return every > 0 && updates % every == 0;
}

/// Taking more memory than there is ends in a kill, not in an error: Linux promises it all and takes the promise back.
void check_fits_memory(const Transformer& model, DType dtype) {
  const double needed = 4.0 * static_cast<double>(model.parameters().count()) * static_cast<double>(size_of(dtype));
  const double pages = static_cast<double>(::sysconf(_SC_PHYS_PAGES));
  const double memory = pages * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  if (needed > memory) {
    fail_input({.where = "[model]",
                .what = "weights, gradients and the optimizer's two moments do not fit this machine's memory",
                .found = bytes_text(needed),
                .expected = "at most " + bytes_text(memory),
                .hint = "minillm check shows which part is how large"});
  }
}

/// Everything a run holds. Built whole by start_run and resume_run; `execute` is the loop.
class Run {
 public:
  Run(LoadedConfig loaded, TokenFile data, bool (*stop_requested)());

  /// The seed cannot bring back weights that came from elsewhere: a resume finds them here.
  void save_start() { save(false); }
  void go_on_from(const Checkpoint& checkpoint);
  RunEnd execute();

  Transformer& model() { return model_; }
  const Config& config() const { return loaded_.config; }
  const ConfigOrigins& origins() const { return loaded_.origins; }

 private:
  void train_step();
  void report(const TrainRecord& record);
  void evaluate_now();
  void save(bool as_best);
  void save_before_failing();
  void finish(std::string_view reason);
  bool time_is_up() const;

  LoadedConfig loaded_;
  TokenFile data_;
  bool (*stop_requested_)();
  Transformer model_;
  std::optional<Loader> loader_;
  std::optional<Loader> validation_;
  std::optional<Trainer> trainer_;
  std::optional<MetricsWriter> metrics_;
  std::optional<SampleWriter> samples_;
  ProgressLine progress_;
  Clock::time_point started_ = Clock::now();
  double seconds_before_ = 0;  // of earlier sessions of the same run
  double step_seconds_ = 0;    // smoothed, for the time left
  double best_val_loss_ = std::numeric_limits<double>::infinity();
  int64_t metrics_bytes_ = 0;
  int64_t samples_bytes_ = 0;
};

Run::Run(LoadedConfig loaded, TokenFile data, bool (*stop_requested)())
    : loaded_(std::move(loaded)), data_(std::move(data)), stop_requested_(stop_requested), model_(config().model) {
  const TrainConfig& train = config().train;
  const int64_t T = config().data.seq_len;
  loader_.emplace(data_.train, T, config().data.order, train.seed);
  if (train.eval_every > 0 && data_.val.size() > 0) {
    validation_.emplace(data_.val, T, "sequential", train.seed, "val");
  }
  check_fits_memory(model_, model_dtype(train));
  model_.allocate(model_dtype(train), train.seed);
  trainer_.emplace(config(), model_, *loader_);
}

void Run::go_on_from(const Checkpoint& checkpoint) {
  checkpoint.load_weights(model_.parameters());
  checkpoint.load_optimizer(model_.parameters(), trainer_->optimizer());
  const RunState& state = checkpoint.state();
  metrics_bytes_ = state.integers.at("metrics_bytes");
  samples_bytes_ = state.integers.at("samples_bytes");
  best_val_loss_ = state.numbers.at("best_val_loss");
  seconds_before_ = state.numbers.at("seconds");
}

RunEnd Run::execute() {
  const std::string& folder = config().run.out;
  clean_checkpoints(folder);
  std::error_code none_there;
  std::filesystem::remove(summary_path(folder), none_there);  // of an earlier session; this one ends with its own
  metrics_.emplace(metrics_path(folder), metrics_bytes_);
  samples_.emplace(samples_path(folder), samples_bytes_, data_);
  log_banner(config(), data_, model_, trainer_->optimizer());
  started_ = Clock::now();
  const int64_t steps = config().train.steps;
  while (trainer_->steps_done() < steps) {
    train_step();
    const int64_t updates = trainer_->steps_done();
    const bool last = updates == steps;
    if (validation_ && (last || due(config().train.eval_every, updates))) {
      evaluate_now();
    }
    if (due(config().train.sample_every, updates)) {
      samples_->write(updates, model_, config());
    }
    const bool stop = stop_requested_ != nullptr && stop_requested_();
    const bool time_over = time_is_up();
    if (last || stop || time_over || due(config().train.checkpoint_every, updates)) {
      save(false);
    }
    if (stop && !last) {
      finish("stopped by a signal");
      return RunEnd::stopped;
    }
    if (time_over && !last) {
      finish("train.max_minutes is over");
      return RunEnd::finished;
    }
  }
  if (checkpoint_steps(folder).empty()) {
    save(false);  // a run of 0 steps leaves a checkpoint too
  }
  finish("all steps done");
  return RunEnd::finished;
}

void Run::train_step() {
  const Clock::time_point begin = Clock::now();
  StepResult result;
  try {
    result = trainer_->step();
  } catch (const Error&) {
    progress_.finish();
    save_before_failing();
    throw;
  }
  const double seconds = seconds_since(begin);
  const int64_t tokens = config().train.batch_size * config().data.seq_len;
  step_seconds_ = step_seconds_ == 0 ? seconds : 0.9 * step_seconds_ + 0.1 * seconds;
  const TrainRecord record = {result.step,
                              result.loss,
                              result.grad_norm,
                              result.lr,
                              trainer_->steps_done() * tokens,
                              static_cast<double>(tokens) / seconds};
  metrics_->append(record);
  report(record);
}

void Run::report(const TrainRecord& record) {
  const int64_t steps = config().train.steps;
  const Progress progress = {.step = record.step + 1,
                             .steps = steps,
                             .loss = record.loss,
                             .lr = record.lr,
                             .grad_norm = record.grad_norm,
                             .tokens_per_s = record.tokens_per_s,
                             .seconds_left = step_seconds_ * static_cast<double>(steps - record.step - 1)};
  progress_.show(progress_text(progress));
  const int64_t every = std::max<int64_t>(1, steps / 20);
  if (!progress_.active() && (record.step == 0 || due(every, record.step + 1))) {
    log_info("{}", progress_text(progress));
  }
}

void Run::evaluate_now() {
  const int64_t windows = std::max<int64_t>(1, config().train.eval_tokens / config().data.seq_len);
  const Evaluation result =
      evaluate(model_, *validation_, windows, config().train.micro_batch_size, tape_options(config().train));
  const int64_t updates = trainer_->steps_done();
  const double bits = bits_per_byte(result.loss, data_.val.size(), data_.val_bytes.value_or(0));
  metrics_->append(EvalRecord{updates, result.loss, bits});
  progress_.finish();
  log_info("step {}/{} | val_loss {:.4f}{}", updates, config().train.steps, result.loss,
           std::isnan(bits) ? "" : fmt::format(" | {:.4f} bits per byte", bits));
  if (result.loss < best_val_loss_) {
    best_val_loss_ = result.loss;
    save(true);
  }
}

/// The update was refused, so this is the last finite state; unless the one before overflowed the weights already.
/// What goes wrong here must not hide why the run fails.
void Run::save_before_failing() {
  try {
    save(false);
  } catch (const Error& error) {
    log_warning("{}", error.what());
  }
}

void Run::save(bool as_best) {
  const std::string& folder = config().run.out;
  if (const std::optional<NonFinite> weight = first_non_finite_weight(model_.parameters())) {
    fail_work({.where = fmt::format("step {}", trainer_->steps_done()),
               .what = fmt::format("the update before made {} not finite; such weights are not saved", weight->tensor),
               .found = fmt::format("{} at element {}", weight->value, weight->index),
               .hint = checkpoint_steps(folder).empty()
                           ? "try a smaller optim.lr"
                           : "an older checkpoint is there; go on with a smaller optim.lr"});
  }
  RunState state{.step = trainer_->steps_done()};
  state.integers = {{"cursor", trainer_->steps_done() * config().train.batch_size},
                    {"seed", static_cast<int64_t>(config().train.seed)},
                    {"metrics_bytes", metrics_ ? metrics_->sync() : metrics_bytes_},
                    {"samples_bytes", samples_ ? samples_->sync() : samples_bytes_}};
  state.numbers = {{"best_val_loss", best_val_loss_}, {"seconds", seconds_before_ + seconds_since(started_)}};
  state.texts = {{"data_sha256", data_.sha256},
                 {"tokenizer_sha256", data_.tokenizer_sha256},
                 {"random_streams", "init, data order, dropout: keyed by the seed and the sample's number"},
                 {"numerics", numerics()}};
  const std::string config_text = to_toml(config(), origins());
  const CheckpointContents contents = {model_.parameters(), &trainer_->optimizer(), state, config_text,
                                       data_.tokenizer};
  if (as_best) {
    save_best_checkpoint(folder, contents);
  } else {
    save_checkpoint(folder, contents, config().train.keep_checkpoints);
  }
}

bool Run::time_is_up() const {
  const double limit = config().train.max_minutes;
  return limit > 0 && seconds_since(started_) >= 60 * limit;
}

void Run::finish(std::string_view reason) {
  progress_.finish();
  const std::string& folder = config().run.out;
  Summary summary = summarize(read_metrics(metrics_path(folder)),
                              data_.unigram_loss.value_or(std::numeric_limits<double>::quiet_NaN()));
  summary.parameters = model_.parameters().count();
  summary.seconds = seconds_before_ + seconds_since(started_);
  complete_summary(summary);
  write_summary(summary_path(folder), summary);
  log_end(config(), summary, reason);
}

TokenFile open_data_of(const LoadedConfig& loaded) {
  const std::string& path = loaded.config.data.path;
  std::error_code error;
  const bool is_missing = path != "synthetic" && !path.empty() && !std::filesystem::exists(path, error);
  if (path.empty() || is_missing) {
    const auto origin = loaded.origins.find("data.path");
    fail_input({.where = origin == loaded.origins.end() ? "data.path" : origin->second + ": data.path",
                .what = path.empty() ? "a run needs data" : "there is no such file",
                .found = path,
                .expected = "a file of `minillm prepare`, or \"synthetic\"",
                .hint = "minillm prepare text.txt --out data.h5, then data.path=data.h5"});
  }
  return open_data(path);
}

void use_threads(const TrainConfig& config) {
  set_num_threads(config.threads > 0 ? config.threads : usable_cores());
}

/// Prints what a resume changes; refuses what it must not change.
void compare_settings(const Config& before, const Config& after) {
  for (const ConfigChange& change : diff(before, after)) {
    const bool fixed = change.key.starts_with("model.") || change.key == "data.seq_len" || change.key == "data.order" ||
                       change.key == "data.objective" || change.key == "train.dtype" || change.key == "train.seed" ||
                       change.key == "train.batch_size" || change.key == "train.micro_batch_size";
    if (fixed) {
      fail_input({.where = change.key,
                  .what = "a resumed run keeps its model, data and batches",
                  .found = change.after,
                  .expected = change.before,
                  .hint = "start another run, with --init to take over the weights"});
    }
    log_info("changed at resume: {} = {} (was {})", change.key, change.after, change.before);
    if (change.key == "train.steps" && before.optim.schedule != "constant") {
      log_warning("the {} schedule now ends at another step: learning rates differ from here on", after.optim.schedule);
    }
  }
}

void check_same_data(const Checkpoint& checkpoint, const TokenFile& data) {
  const auto& texts = checkpoint.state().texts;
  if (texts.at("tokenizer_sha256") != data.tokenizer_sha256 || texts.at("data_sha256") != data.sha256) {
    fail_input({.where = data.path,
                .what = "is not the data this run was trained on",
                .found = "SHA-256 " + data.sha256,
                .expected = texts.at("data_sha256"),
                .hint = "resume with the original file, or start another run with --init"});
  }
}

}  // namespace

void complete_config(LoadedConfig& loaded, const TokenFile* data) {
  Config& config = loaded.config;
  const Config written = config;  // which keys were derived is told by what they were before
  std::vector<Problem> problems =
      derive_and_check(config.model, data != nullptr ? data->vocab_size : 0, config.data.seq_len);
  for (Problem& problem : problems) {
    problem = located(std::move(problem), written, loaded.origins);
  }
  fail_if_any(problems);
}

RunEnd start_run(const StartRequest& request) {
  LoadedConfig loaded = request.loaded;
  TokenFile data = open_data_of(loaded);
  complete_config(loaded, &data);
  use_threads(loaded.config.train);
  for (const std::string& notice : config_notices(loaded.config)) {
    log_warning("{}", notice);
  }
  const Config config = loaded.config;
  const ConfigOrigins origins = loaded.origins;
  // Everything that can be wrong is checked before the folder is made: a refused run leaves nothing behind.
  Run run(std::move(loaded), std::move(data), request.stop_requested);
  load_initial_weights(run.model(), {config, origins}, request.init);
  const std::string moved = create_run_folder(config.run.out, request.force);
  const FileDescriptor lock = lock_run_folder(config.run.out);
  if (!moved.empty()) {
    log_info("the old run is now {}", moved);
  }
  if (!request.init.empty()) {
    run.save_start();
  }
  write_run_config(config.run.out, to_toml(config, origins));  // last: with it the folder is one to resume
  return run.execute();
}

RunEnd resume_run(const ResumeRequest& request) {
  check_run_folder(request.folder);
  const FileDescriptor lock = lock_run_folder(request.folder);
  const std::optional<Checkpoint> checkpoint = newest_checkpoint(request.folder);
  const std::string file = config_path(request.folder);
  const auto parse = [&](const std::vector<std::string>& overrides) {
    return checkpoint ? parse_config(checkpoint->config(), file, overrides) : load_config(file, overrides);
  };
  LoadedConfig before = parse({});
  LoadedConfig loaded = parse(request.overrides);
  TokenFile data = open_data_of(loaded);
  if (checkpoint) {
    check_same_data(*checkpoint, data);
  }
  complete_config(before, &data);
  complete_config(loaded, &data);
  before.config.run.out = request.folder;  // the folder may have been moved since
  loaded.config.run.out = request.folder;
  compare_settings(before.config, loaded.config);
  const bool done = checkpoint && checkpoint->step() >= loaded.config.train.steps;
  if (done && std::filesystem::exists(summary_path(request.folder))) {
    clean_checkpoints(request.folder);
    log_info("{} is finished already: {} of {} steps; train.steps=N goes on", request.folder, checkpoint->step(),
             loaded.config.train.steps);
    return RunEnd::finished;
  }
  use_threads(loaded.config.train);
  const std::string config_text = to_toml(loaded.config, loaded.origins);
  Run run(std::move(loaded), std::move(data), request.stop_requested);
  if (checkpoint) {
    run.go_on_from(*checkpoint);
    log_info("resumes {} after {} updates", checkpoint->path(), checkpoint->step());
  } else {
    log_info("{} has no valid checkpoint yet: starts at step 0", request.folder);
  }
  write_run_config(request.folder, config_text);
  return run.execute();
}

}  // namespace minillm
