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
    sum += model.forward(tape, batch).item() * static_cast<double>(batch.tokens());
    result.tokens += batch.tokens();
  }
  result.loss = sum / static_cast<double>(result.tokens);
  return result;
}

double bits_per_byte(double loss, int64_t split_tokens, int64_t split_bytes) {
  if (split_bytes == 0) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return loss / std::log(2.0) * static_cast<double>(split_tokens) / static_cast<double>(split_bytes);
}

}  // namespace minillm
