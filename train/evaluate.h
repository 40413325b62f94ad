#pragma once
// The loss on held-out windows.

#include "autograd/tape.h"
#include "data/loader.h"
#include "nn/transformer.h"

#include <cstdint>

namespace minillm {

struct Evaluation {
  double loss = 0;     ///< mean nats per token
  int64_t tokens = 0;  ///< predicted
  int64_t windows = 0;
};

/// Reads the first `windows` windows of `data` in order (all when there are fewer), `batch_size` at a time, without
/// dropout. Changes neither the model nor any random stream.
Evaluation evaluate(const Transformer& model, const Loader& data, int64_t windows, int64_t batch_size,
                    TapeOptions options);

/// val_loss / ln 2 * tokens / bytes of the split: comparable across vocabularies. NaN when bytes is 0 (unknown).
double bits_per_byte(double loss, int64_t split_tokens, int64_t split_bytes);

}  // namespace minillm
