#pragma once
// metrics.jsonl: one line a step and one an evaluation, appended and flushed. It never holds a step twice, also across
// a resume: the checkpoint keeps the file's size, and what was written after it is cut off.

#include "train/line_log.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace minillm {

/// {"step":0,"loss":7.62,"grad_norm":1.9,"lr":1e-05,"tokens":4096,"tokens_per_s":5210.3}
struct TrainRecord {
  int64_t step = 0;      ///< from 0: the loss is the one before update step + 1
  double loss = 0;       ///< mean nats per token over the optimizer step
  double grad_norm = 0;  ///< global, before clipping
  double lr = 0;         ///< of the update that follows
  int64_t tokens = 0;    ///< trained on so far, this step included
  double tokens_per_s = 0;
};

/// {"step":50,"val_loss":4.21,"val_bits_per_byte":1.9}
struct EvalRecord {
  int64_t step = 0;                                                     ///< updates done
  double val_loss = 0;                                                  ///< mean nats per token
  double val_bits_per_byte = std::numeric_limits<double>::quiet_NaN();  ///< NaN: the data has no byte counts
};

/// Numbers are the shortest text that reads back to the same double; NaN and infinities are null. Without a line end.
std::string to_json(const TrainRecord& record);
std::string to_json(const EvalRecord& record);

/// What a metrics.jsonl holds; null reads as NaN.
struct Metrics {
  std::vector<TrainRecord> train;
  std::vector<EvalRecord> evaluations;
};

/// Reads a metrics.jsonl; a missing file is empty, an unfinished last line (a writer is at work) is left out. A broken
/// line before it is an Error with file:line.
Metrics read_metrics(const std::string& path);

/// Appends to a metrics.jsonl.
class MetricsWriter {
 public:
  /// See LineLog.
  MetricsWriter(std::string path, int64_t keep_bytes);

  /// A step that the file holds already is refused.
  void append(const TrainRecord& record);
  void append(const EvalRecord& record);

  /// Flushes to the disk and returns the file's size: what a checkpoint stores.
  int64_t sync() { return log_.sync(); }

 private:
  LineLog log_;
  int64_t last_train_step_ = -1;
  int64_t last_eval_step_ = -1;
};

}  // namespace minillm
