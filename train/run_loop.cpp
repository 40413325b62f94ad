#include "train/run_loop.h"

#include "core/build_info.h"
#include "core/log.h"
#include "optim/finite.h"
#include "train/banner.h"
#include "train/evaluate.h"
#include "train/lint.h"
#include "train/memory_estimate.h"
#include "train/run_folder.h"
#include "train/summary.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace minillm {

namespace {

/// Whether the best checkpoint comes from a step that the run has not done: a killed session's.
bool is_ahead(const std::string& best, int64_t step) {
  try {
    return std::filesystem::exists(best) && Checkpoint(best).step() > step;
  } catch (const Error& error) {
    log_warning("{}", error.what());
    return false;
  }
}

}  // namespace

RunLoop::RunLoop(LoadedConfig loaded, TokenFile data, SessionOptions session)
    : loaded_(std::move(loaded)), data_(std::move(data)), session_(std::move(session)), model_(config().model) {
  const TrainConfig& train = config().train;
  const int64_t T = config().data.seq_len;
  loader_.emplace(data_.train, T, config().data.order, train.seed, "train", config().data.objective);
  if (train.eval_every > 0 && data_.val.size() > 0) {
    validation_.emplace(validation_windows(data_.val, config().data));
  }
  check_training_fits(model_, config());
  model_.allocate(model_dtype(train), train.seed);
  trainer_.emplace(config(), model_, *loader_);
}

void RunLoop::go_on_from(const Checkpoint& checkpoint, bool is_changed) {
  checkpoint.load_weights(model_.parameters());
  checkpoint.load_optimizer(model_.parameters(), trainer_->optimizer());
  metrics_bytes_ = checkpoint.integer("metrics_bytes");
  samples_bytes_ = checkpoint.integer("samples_bytes");
  best_val_loss_ = checkpoint.number("best_val_loss");
  seconds_before_ = checkpoint.number("seconds");
  const auto init = checkpoint.state().texts.find("init");
  init_ = init == checkpoint.state().texts.end() ? "" : init->second;
  const bool same_numerics = checkpoint.text("numerics") == numerics();
  if (!same_numerics) {
    log_warning("the run was begun by another build or on another kind of machine: bits differ from here on");
  }
  const std::string best = best_checkpoint_path(config().run.out);
  if ((is_changed || !same_numerics) && is_ahead(best, checkpoint.step())) {
    log_warning("{} was of steps that are not taken again and is removed; the best from here on replaces it", best);
    std::filesystem::remove(best);
    best_val_loss_ = std::numeric_limits<double>::infinity();
  }
}

RunEnd RunLoop::execute() {
  begin_session();
  while (trainer_->steps_done() < config().train.steps) {
    train_step();
    const bool last = trainer_->steps_done() == config().train.steps;
    if (validation_ && (last || due(config().train.eval_every))) {
      evaluate_now();
    }
    if (due(config().train.sample_every)) {
      samples_->write(trainer_->steps_done(), model_, config());
    }
    const std::optional<Ending> ending = reason_to_end();
    if (ending || due(config().train.checkpoint_every)) {
      save(false);
    }
    if (ending) {
      end(ending->end == RunEnd::stopped ? "stopped" : "finished", ending->reason);
      return ending->end;
    }
  }
  if (checkpoint_steps(config().run.out).empty()) {
    save(false);  // a run of 0 steps leaves a checkpoint too
  }
  end("finished", "all steps done");
  return RunEnd::finished;
}

bool RunLoop::due(int64_t every) const {
  return every > 0 && trainer_->steps_done() % every == 0;
}

/// Opens what the session writes, and says what it will do.
void RunLoop::begin_session() {
  const std::string& folder = config().run.out;
  clean_checkpoints(folder);
  metrics_.emplace(metrics_path(folder), metrics_bytes_);
  samples_.emplace(samples_path(folder), samples_bytes_, data_);
  std::error_code none_there;
  std::filesystem::remove(summary_path(folder), none_there);  // of an earlier session; this one ends with its own
  std::filesystem::remove(layers_path(folder), none_there);
  log_banner(config(), data_, model_, trainer_->optimizer());
  if (session_.look_at_step) {
    look_at_first_step();
  }
  started_ = Clock::now();
}

/// What goes wrong here is told, and the training goes on.
void RunLoop::look_at_first_step() {
  if (trainer_->steps_done() == config().train.steps) {
    log_warning("no step is left whose tape could be recorded");
    return;
  }
  try {
    session_.look_at_step(record_step(config(), model_, *loader_, trainer_->steps_done()));
  } catch (const std::exception& error) {
    log_warning("the tape is not recorded: {}", error.what());
  }
}

void RunLoop::train_step() {
  const Clock::time_point begin = Clock::now();
  StepResult result;
  try {
    result = trainer_->step();
  } catch (const Error&) {
    progress_.finish();
    keep_what_failed();
    throw;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
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

void RunLoop::report(const TrainRecord& record) {
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
  if (!progress_.active() && (record.step == 0 || due(every))) {
    log_info("{}", progress_text(progress));
  }
}

void RunLoop::evaluate_now() {
  const int64_t windows = std::max<int64_t>(1, config().train.eval_tokens / config().data.seq_len);
  const Evaluation result =
      evaluate(model_, *validation_, windows, config().train.micro_batch_size, tape_options(config().train));
  const int64_t updates = trainer_->steps_done();
  const double bits = bits_per_byte(result.loss, config().data, data_);
  metrics_->append(EvalRecord{updates, result.loss, bits});
  progress_.finish();
  log_info("step {}/{} | val_loss {:.4f}{}", updates, config().train.steps, result.loss,
           std::isnan(bits) ? "" : fmt::format(" | {:.4f} bits per byte", bits));
  if (result.loss < best_val_loss_) {
    best_val_loss_ = result.loss;
    save(true);
  }
}

void RunLoop::trace_what_failed() {
  const std::optional<Birthplace> place = trainer_->trace_non_finite();
  log_info("{}", place ? birthplace_text(*place)
                       : "made again every value of the step is finite; the norm of its gradients overflows");
}

/// The update was refused, so this is the last finite state; unless the one before overflowed the weights already.
/// What goes wrong here must not hide why the run fails.
void RunLoop::keep_what_failed() {
  const auto attempt = [](const auto& action) {
    try {
      action();
    } catch (const Error& error) {
      log_warning("{}", error.what());
    }
  };
  if (session_.trace_nan) {
    attempt([&] { trace_what_failed(); });
  }
  attempt([&] { save(false); });
  attempt([&] { end("failed", "the next update is not finite"); });
}

void RunLoop::save(bool as_best) {
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
  state.numbers = {{"best_val_loss", best_val_loss_}, {"seconds", seconds_before_ + seconds_of_session()}};
  state.texts = {{"data_sha256", data_.sha256},
                 {"tokenizer_sha256", data_.tokenizer_sha256},
                 {"random_streams", "init, data order, dropout: keyed by the seed and the sample's number"},
                 {"numerics", numerics()},
                 {"init", init_}};
  const std::string config_text = to_toml(config(), loaded_.origins);
  const CheckpointContents contents = {model_.parameters(), &trainer_->optimizer(), state, config_text,
                                       data_.tokenizer};
  if (as_best) {
    save_best_checkpoint(folder, contents);
  } else {
    save_checkpoint(folder, contents, config().train.keep_checkpoints);
  }
}

std::optional<RunLoop::Ending> RunLoop::reason_to_end() const {
  if (trainer_->steps_done() == config().train.steps) {
    return Ending{RunEnd::finished, "all steps done"};
  }
  if (session_.stop_requested != nullptr && session_.stop_requested()) {
    return Ending{RunEnd::stopped, "stopped by a signal"};
  }
  const double limit = 60 * config().train.max_minutes;
  if (limit > 0 && seconds_of_session() >= limit) {
    return Ending{RunEnd::finished, "train.max_minutes is over"};
  }
  return std::nullopt;
}

double RunLoop::seconds_of_session() const {
  return std::chrono::duration<double>(Clock::now() - started_).count();
}

/// Writes what the run came to, and says it.
void RunLoop::end(std::string_view how, std::string_view reason) {
  progress_.finish();
  const std::string& folder = config().run.out;
  const Metrics metrics = read_metrics(metrics_path(folder));
  Summary summary = summarize(metrics, data_.unigram_loss.value_or(std::numeric_limits<double>::quiet_NaN()));
  summary.end = how;
  summary.diverged = summary.diverged || how == "failed";
  summary.parameters = model_.parameters().count();
  summary.init = init_;
  summary.seconds = seconds_before_ + seconds_of_session();
  complete_summary(summary);
  std::vector<Finding> findings;
  if (how == "finished") {
    findings = lint_metrics(metrics, summary);
    if (validation_) {
      const LintReport report = lint_weights(model_, *validation_);
      findings.insert(findings.end(), report.findings.begin(), report.findings.end());
      write_layers(layers_path(folder), report.layers);
    }
  }
  write_summary(summary_path(folder), summary);
  log_end(config(), data_, metrics, summary, reason);
  log_findings(audible(findings, config()));
}

}  // namespace minillm
