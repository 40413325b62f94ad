#pragma once
// What training a model must keep in memory, by formula: the yardstick of `minillm bench` and `minillm check`.

#include "nn/transformer.h"
#include "train/train_config.h"

namespace minillm {

/// Bytes. Of each token and layer backward needs the block's input, what attention adds it to, q|k|v, the heads' output
/// and the FFN's hidden values; norms and activations can be made again from these.
struct MemoryEstimate {
  double state = 0;        ///< weights, gradients, two moments
  double activations = 0;  ///< of all layers, for one micro-batch
  double workspace = 0;    ///< gradients under way in one layer, and a chunk of logits

  double total() const { return state + activations + workspace; }
};

MemoryEstimate estimate_memory(const Transformer& model, const Config& config);

}  // namespace minillm
