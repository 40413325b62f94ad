#pragma once
// A run as reports see it: its folder, or the record of one, with its curves thinned.

#include "train/metrics.h"
#include "train/summary.h"
#include "train/train_config.h"

#include <cstdint>
#include <string>
#include <vector>

namespace minillm {

struct RunRecord {
  std::string folder;
  Config config;  ///< complete
  Metrics metrics;
  std::string layers = "null";  ///< a JSON array: layers.json's
  Summary summary;  ///< of a run without one: what its metrics say so far, and `end` is "unfinished"

  const std::string& name() const { return config.run.name; }
  uint64_t seed() const { return config.train.seed; }
  /// Whether it came to its end, be it a failed update.
  bool is_over() const { return summary.end == "finished" || summary.end == "failed"; }
  int64_t tokens_per_step() const { return config.train.batch_size * config.data.seq_len; }
};

/// Reads a run's folder. The data file need not be there.
RunRecord read_run(const std::string& folder);

/// The runs in `path`, in the order of their names: itself when it is a run's folder, else those of its subfolders that
/// are. Throws an input Error when there is none.
std::vector<std::string> find_runs(const std::string& path);

}  // namespace minillm
