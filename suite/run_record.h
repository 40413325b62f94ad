#pragma once
// A run as reports see it: its folder, or the record of one, with its curves thinned.

#include "train/metrics.h"
#include "train/summary.h"
#include "train/train_config.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace minillm {

struct RunRecord {
  std::string folder;
  std::string suite = {};  ///< "NAME/" where runs of several suites are compared: before its group's name
  Config config;           ///< complete
  Metrics metrics;
  std::string layers = "null";  ///< a JSON array: layers.json's
  Summary summary;              ///< of a run without one: what its metrics say so far, and `end` is "unfinished"

  const std::string& name() const { return config.run.name; }
  uint64_t seed() const { return config.train.seed; }
  /// Whether it came to its end, be it a failed update.
  bool has_ended() const { return summary.end == "finished" || summary.end == "failed"; }
  /// NaN unless it did all its steps: an evaluation on the way is no final one.
  double final_val_loss() const {
    const bool is_whole = summary.end == "finished" && summary.steps == config.train.steps;
    return is_whole ? summary.final_val_loss : std::numeric_limits<double>::quiet_NaN();
  }
  int64_t tokens_per_step() const { return config.train.batch_size * config.data.seq_len; }
};

/// Reads a run's folder. The data file need not be there.
RunRecord read_run(const std::string& folder);

/// The runs in `path`, in the order of their names: itself when it is a run's folder, else those of its subfolders that
/// are. Throws an input Error when there is none.
std::vector<std::string> find_runs(const std::string& path);

}  // namespace minillm
