#pragma once
// Batch: the token ids a model is trained or evaluated on.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace minillm {

/// batch_size sequences of seq_len token ids, row-major [B, T]; targets[b, t] is the token that follows inputs[b, t],
/// or was hidden there. A negative target is not counted in the loss.
struct Batch {
  int64_t batch_size = 0;
  int64_t seq_len = 0;
  std::vector<int32_t> inputs;
  std::vector<int32_t> targets;

  int64_t tokens() const { return batch_size * seq_len; }
  int64_t counted() const {
    return std::count_if(targets.begin(), targets.end(), [](int32_t target) { return target >= 0; });
  }
};

}  // namespace minillm
