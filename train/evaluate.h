#pragma once
// The loss on held-out windows.

#include "autograd/tape.h"
#include "data/data_config.h"
#include "data/loader.h"
#include "nn/transformer.h"

#include <cstdint>

namespace minillm {

struct Evaluation {
  double loss = 0;     ///< mean nats per predicted token
  int64_t tokens = 0;  ///< predicted
  int64_t windows = 0;
};

/// Reads the first `windows` windows of `data` in order (all when there are fewer), `batch_size` at a time, without
/// dropout. Changes neither the model nor any random stream.
Evaluation evaluate(const Transformer& model, const Loader& data, int64_t windows, int64_t batch_size,
                    TapeOptions options);

/// The windows of the validation split in order. Under the masked objective the same tokens are hidden in every run.
Loader validation_windows(const Tokens& validation, const DataConfig& config);

/// val_loss / ln 2 * tokens / bytes of the split: comparable across vocabularies. NaN where the bytes are not known,
/// and under the masked objective, whose loss is no code length of the text.
double bits_per_byte(double loss, const DataConfig& config, const TokenFile& data);

}  // namespace minillm
