#include "train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace minillm {

Evaluation evaluate(const Transformer& model, const Loader& data, int64_t windows, int64_t batch_size,
                    TapeOptions options) {
  options.record = false;
  options.training = false;
  Tape tape(options);
  Evaluation result;
  result.windows = std::min(windows, data.windows());
  Batch batch;
  double sum = 0;
  for (int64_t first = 0; first < result.windows; first += batch_size) {
    data.batch(first, std::min(batch_size, result.windows - first), batch);
    tape.clear();
    const int64_t counted = batch.counted();
    sum += model.forward(tape, batch).item() * static_cast<double>(counted);
    result.tokens += counted;
  }
  result.loss = sum / static_cast<double>(std::max<int64_t>(1, result.tokens));
  return result;
}

Loader validation_windows(const Tokens& validation, const DataConfig& config) {
  return {validation, config.seq_len, "sequential", 0, "val", config.objective};
}

double bits_per_byte(double loss, const DataConfig& config, const TokenFile& data) {
  const int64_t bytes = data.val_bytes.value_or(0);
  if (bytes == 0 || config.objective == "masked") {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return loss / std::log(2.0) * static_cast<double>(data.val.size()) / static_cast<double>(bytes);
}

}  // namespace minillm
