#pragma once
// The way of data through a model and through one layer. Stages with shapes, parameters and what each does, told by the
// config and the registered shapes; nothing runs.

#include "nn/transformer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace minillm {

/// For a sequence of T tokens.
struct Stage {
  std::string name;   ///< "embed_tokens", "token mixer"
  std::string reads;  ///< "[T, 256]"
  std::string writes;
  int64_t parameters = 0;  ///< 0: nothing is learned here
  std::string what;        ///< "an addition", "each token by itself"
};

/// Embeddings, the layers together, final norm and head. What the config leaves out stands there with its reason.
std::vector<Stage> model_stages(const Transformer& model);

/// Of one layer: its input, then norm, mixer, addition, norm, feed-forward network, addition, in the order in which
/// they stand on the tape. Where the residual connection is no addition each half begins with its read and ends with
/// its write.
std::vector<Stage> layer_steps(const Transformer& model, int64_t layer);

/// How often sublayers write to the residual stream, in all layers.
int64_t residual_writes(const ModelConfig& config);

}  // namespace minillm
