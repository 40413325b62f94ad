#pragma once
// The loop of a run: steps, evaluates, samples, saves, until there is a reason to end.

#include "core/terminal.h"
#include "data/loader.h"
#include "data/token_file.h"
#include "nn/transformer.h"
#include "train/checkpoint.h"
#include "train/config_file.h"
#include "train/metrics.h"
#include "train/run.h"
#include "train/samples.h"
#include "train/trainer.h"

#include <chrono>
#include <limits>
#include <optional>
#include <string_view>

namespace minillm {

/// Everything a run holds. Built whole by start_run and resume_run; `execute` is the loop.
class RunLoop {
 public:
  /// Throws an input Error when the data is too short for a window or the model too large for the machine.
  RunLoop(LoadedConfig loaded, TokenFile data, SessionOptions session);

  /// The seed cannot bring back weights that came from elsewhere: a resume finds them here.
  void save_start(const std::string& init) {
    init_ = init;
    save(false);
  }
  /// `is_changed`: the steps behind the checkpoint will not be those that a killed session did.
  void go_on_from(const Checkpoint& checkpoint, bool is_changed);
  RunEnd execute();

  Transformer& model() { return model_; }
  const TokenFile& data() const { return data_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Ending {
    RunEnd end;
    std::string_view reason;
  };

  const Config& config() const { return loaded_.config; }
  bool due(int64_t every) const;
  void begin_session();
  void look_at_first_step();
  void train_step();
  void report(const TrainRecord& record);
  void evaluate_now();
  void save(bool as_best);
  void trace_what_failed();
  void keep_what_failed();
  std::optional<Ending> reason_to_end() const;
  double seconds_of_session() const;
  void end(std::string_view how, std::string_view reason);

  std::string init_;  // see Summary::init
  LoadedConfig loaded_;
  TokenFile data_;
  SessionOptions session_;
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

}  // namespace minillm
