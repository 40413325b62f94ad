#pragma once
// summary.json: what a run came to, written when it ends.

#include "train/metrics.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace minillm {

/// NaN is written as null: not known, or no such evaluation.
struct Summary {
  std::string end = "finished";  ///< or "stopped", by a signal; "failed": an update that was not finite was refused
  int64_t steps = 0;             ///< updates done
  int64_t parameters = 0;
  double final_val_loss = std::numeric_limits<double>::quiet_NaN();
  double best_val_loss = std::numeric_limits<double>::quiet_NaN();
  double grad_norm_max_first_100 = std::numeric_limits<double>::quiet_NaN();  ///< over steps 0..99
  bool diverged = false;                                                      ///< some loss was above the first + 1
  bool stalled = false;  ///< |val_loss - unigram_loss| <= 0.05 in every evaluation of the last quarter
  double unigram_loss = std::numeric_limits<double>::quiet_NaN();
  double tokens_per_s = std::numeric_limits<double>::quiet_NaN();  ///< median over steps
  int64_t peak_memory_bytes = 0;
  double seconds = 0;
  std::string init;  ///< what the weights started from and its SHA-256; "" = the seed
  std::string version;
  std::string commit;
  std::string numerics;  ///< core/build_info.h's hash
  int threads = 0;
  std::string cpu;
};

/// Of the finite values; NaN without any.
double median(std::vector<double> values);

/// Fills in what follows from the metrics alone: steps to tokens_per_s, without `parameters`.
Summary summarize(const Metrics& metrics, double unigram_loss);

/// One object, one key a line, in the order above.
std::string to_json(const Summary& summary);

/// Replaces `path` whole or not at all.
void write_summary(const std::string& path, const Summary& summary);

/// Nothing when there is no such file: the run goes on, or was killed. An input Error when it is no summary.
std::optional<Summary> read_summary(const std::string& path);

}  // namespace minillm
