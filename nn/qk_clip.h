#pragma once
// QK-Clip (Kimi K2, 2025, arXiv 2507.20534, sec. 2.1): no score of attention stays above a threshold.

#include "autograd/ops.h"
#include "autograd/parameter.h"
#include "core/kernels/attention.h"

#include <cstdint>
#include <vector>

namespace minillm {

/// After an update every head h whose largest score S_h since the last one exceeded the threshold tau has its queries
/// and keys multiplied so that this score would have been tau: gamma_h = min(1, tau / S_h), keys by sqrt(gamma),
/// queries by the rest. Heads that share keys take the smallest gamma among them for these.
class QkClip final : public UpdateHook {
 public:
  /// weight [layout.width(), d] and bias [layout.width()] (null: none) make queries and keys, and outlive this.
  QkClip(double threshold, const QkvLayout& layout, Parameter& weight, Parameter* bias)
      : threshold_(threshold), layout_(layout), weight_(weight), bias_(bias) {
    forget();
  }

  /// The largest score of each head in a forward pass that an update follows.
  void observe(const std::vector<double>& largest);

  void after_update() override;

 private:
  void forget();
  void multiply_rows(int64_t first, double factor) const;

  double threshold_;
  QkvLayout layout_;
  Parameter& weight_;
  Parameter* bias_;
  std::vector<double> largest_;  // of each head since the last update
};

}  // namespace minillm
