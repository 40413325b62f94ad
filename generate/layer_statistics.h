#pragma once
// What one forward pass shows of each layer of a model: how large the residual stream is, how alike its tokens are,
// where attention looks, what the feed-forward network's units do.

#include "nn/transformer.h"

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace minillm {

/// Over all tokens of a batch. NaN or empty: the layer has no such value.
struct LayerStatistics {
  double stream_rms = 0;    ///< root of the mean square of what Transformer::streams reads behind the layer
  double token_cosine = 0;  ///< cosine of two tokens' vectors of that, over all pairs of a sequence; of one token: NaN
  double first_token_share = std::numeric_limits<double>::quiet_NaN();  ///< of attention, from tokens behind the first
  double largest_score = std::numeric_limits<double>::quiet_NaN();      ///< of a query with a key that it sees
  double ffn_largest = std::numeric_limits<double>::quiet_NaN();        ///< |value| that a down_proj reads
  double ffn_dead = std::numeric_limits<double>::quiet_NaN();  ///< share of the inner units, of all experts that were
                                                               ///< chosen, that are 0 for every token
  std::vector<double> expert_shares = {};  ///< of a mixture: of the tokens' choices, how many fell on each expert
};

/// A layer each, of the sequences `ids` [B, T], without dropout. Every intermediate value is kept: memory grows with
/// B T^2.
std::vector<LayerStatistics> layer_statistics(const Transformer& model, std::span<const int32_t> ids,
                                              int64_t batch_size);

}  // namespace minillm
