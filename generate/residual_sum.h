#pragma once
// The residual stream as a sum: which nodes wrote to it, and what each write adds to the logits.

#include "generate/inspect.h"
#include "nn/transformer.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace minillm {

/// One addition to the stream.
struct StreamAddition {
  int64_t layer = 0;
  bool is_ffn = false;
  const Node* write = nullptr;  ///< what was added [B, T, d]
};

/// The additions that lead from the embedding to the stream behind the last layer, in their order; none where something
/// else stands between: a norm behind an addition, streams that are mixed, no addition at all.
std::vector<StreamAddition> stream_additions(const Trace& trace);

/// Why a model's stream is no sum of writes, in words of its config.
std::string why_no_sum(const ModelConfig& config);

/// Adds the writes up, in double, and compares.
ResidualSum residual_sum(const Trace& trace, std::span<const StreamAddition> additions);

/// What vectors of the stream are worth in logits of the next token. With the final norm taken as what it multiplied
/// by, logits are linear in the stream: c_ti = hidden_ti / x_ti, and with w = W_v - mean of W's rows, v the token
/// behind t,
///   logit(F) = mean over t < T - 1 of sum_i F_ti c_ti w_i
class NextTokenLogit {
 public:
  /// Of one sequence, `ids` [T]. `trace` must live as long.
  NextTokenLogit(const Transformer& model, const Trace& trace, std::span<const int32_t> ids);

  /// Of what the head reads, where there is no c: the logit itself, less the mean of all logits.
  double whole() const;
  /// Of a vector of the stream for each token, values [1, T, d]; NaN where the final norm does more than multiply.
  double of(const Tensor& values) const;

 private:
  double sum(const std::vector<double>& values, const std::vector<double>& factors) const;

  int64_t predictions_;          // T - 1
  std::vector<double> hidden_;   // [T, d]
  std::vector<double> readout_;  // w of each prediction [T - 1, d]
  std::vector<double> factors_;  // c [T, d]; empty: there is none
};

}  // namespace minillm
