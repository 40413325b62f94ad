#pragma once
// QK-Clip (Kimi K2, 2025, arXiv 2507.20534, sec. 2.1): no score of attention stays above a threshold.

#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "core/kernels/attention.h"

#include <cstdint>
#include <vector>

namespace minillm {

/// Of a projection [.., in] the rows that make one head's part, head after head.
struct HeadRows {
  Parameter* weight = nullptr;  ///< null: no head has rows of its own
  Parameter* bias = nullptr;    ///< [..], null: none
  int64_t first = 0;            ///< of the first head
  int64_t stride = 0;           ///< from one head to the next
  int64_t count = 0;            ///< of one head
};

/// Elements of queries and keys that meet in a score, and what makes them. Keys without rows are shared by all heads.
struct ScoreRows {
  HeadRows queries;
  HeadRows keys;
};

/// After an update every head h whose largest score S_h since the last one exceeded the threshold tau has its queries
/// and keys multiplied so that this score would have been tau: gamma_h = min(1, tau / S_h), keys by sqrt(gamma),
/// queries by the rest. Heads that share keys take the smallest gamma among them for these; keys that all heads share
/// stay, and their queries take gamma whole (so latent attention's rotated ones).
class QkClip final : public UpdateHook {
 public:
  /// Follows the updates of `store`, which owns the parameters of `parts` and is updated no more once this is gone.
  QkClip(double threshold, ParameterStore& store, int64_t n_heads, int64_t n_kv_heads, std::vector<ScoreRows> parts);

  /// Takes note of the largest score of each head, where an update follows: `attended` is what attention made of
  /// qkv [B, T, layout.width()].
  void observe(Var qkv, Var attended, const QkvLayout& layout, bool causal);

  void after_update() override;

 private:
  void forget();

  double threshold_;
  int64_t n_heads_;
  int64_t n_kv_heads_;
  std::vector<ScoreRows> parts_;
  std::vector<double> largest_;  // of each head since the last update
};

}  // namespace minillm
