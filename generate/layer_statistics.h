#pragma once
// What one forward pass shows of each layer of a model: how large the residual stream is, how alike its tokens are,
// where attention looks, what the feed-forward network's units do.

#include "core/json_object.h"
#include "nn/transformer.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace minillm {

/// What stands where there is no such value.
inline constexpr double not_there = std::numeric_limits<double>::quiet_NaN();

/// What a gate multiplies by, over all tokens and channels. Only a sigmoid's values lie in (0, 1): SiLU goes down to
/// -0.2785 and has no upper bound, so that its mean is no share of "open". NaN: there is no gate.
struct GateStatistics {
  double mean = not_there;
  double below_0 = not_there;  ///< share of the values
  double above_1 = not_there;  ///< likewise
};

/// Over all tokens of a batch. NaN or empty: the layer has no such value.
struct LayerStatistics {
  double stream_rms = 0;    ///< root of the mean square of the Trace's stream behind the layer
  double mean_share = 0;    ///< of a token's mean square in that, what its features' mean makes up, over all tokens
  double token_cosine = 0;  ///< cosine of two tokens' vectors of that, over all pairs of a sequence; of one token: NaN
  double first_token_share = not_there;    ///< of attention, from tokens behind the first
  double largest_score = not_there;        ///< of a query with a key that it sees
  double ffn_largest = not_there;          ///< |value| that a down_proj reads
  double ffn_dead = not_there;             ///< share of the inner units, of all experts that were
                                           ///< chosen, that are 0 for every token
  double norm_gain = not_there;            ///< mean over the layer's norms, relative to the start
  double norm_output = not_there;          ///< RMS of what the norms of its sublayers write
  GateStatistics ffn_gate = {};            ///< of a gated unit, of all experts that were chosen
  GateStatistics mixer_gate = {};          ///< of attention or of a linear layer
  std::vector<double> expert_shares = {};  ///< of a mixture: of the tokens' choices, how many fell on each expert
};

/// Of many values: their mean, their standard deviation, the root of their mean square.
struct Moments {
  double mean = 0;
  double std = 0;
  double rms = 0;
};
Moments moments(const std::vector<double>& values);

/// Of vectors of `width`, one behind the other: the mean over vectors of (mean of the components)^2 / (mean of their
/// squares), which is what LayerNorm takes away and RMSNorm leaves.
double mean_share(const std::vector<double>& values, int64_t width);

/// Where the gains of a norm stand; zero-centered ones with the 1 that is added to them.
struct NormGain {
  double mean = 0;
  double start = 0;
};

/// Nothing for a parameter that is no norm's gain vector.
std::optional<NormGain> norm_gain(const Parameter& parameter);

/// A layer each, of the sequences `ids` [B, T], without dropout. Every intermediate value is kept: memory grows with
/// B T^2.
std::vector<LayerStatistics> layer_statistics(const Transformer& model, std::span<const int32_t> ids,
                                              int64_t batch_size);

/// {"layer":0,"stream_rms":1.2,...}: the fields by their names, null where the layer has no such value.
JsonObject to_json(size_t layer, const LayerStatistics& statistics);

}  // namespace minillm
