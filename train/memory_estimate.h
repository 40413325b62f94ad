#pragma once
// What training a model must keep in memory, by formula: what a run is refused by that cannot fit, what `minillm check`
// tells of weights and optimizer, and the yardstick of `minillm bench`.

#include "nn/transformer.h"
#include "train/train_config.h"

#include <cstdint>

namespace minillm {

/// Bytes. Of each token and layer backward needs the block's input, what attention adds it to, q|k|v, the heads' output
/// and the FFN's hidden values; norms and activations can be made again from these.
struct MemoryEstimate {
  int64_t state = 0;        ///< weights, gradients, two moments
  double rotary_table = 0;  ///< cosines and sines; 0: no rope
  double activations = 0;   ///< of all layers, for one micro-batch
  double workspace = 0;     ///< gradients under way in one layer, and the logits that the loss holds at once

  double kept() const { return static_cast<double>(state) + rotary_table; }  ///< from step to step
  double total() const { return kept() + activations + workspace; }
};

MemoryEstimate estimate_memory(const Transformer& model, const Config& config);

}  // namespace minillm
