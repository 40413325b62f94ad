#include "nn/qk_clip.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace minillm {

void QkClip::observe(const std::vector<double>& largest) {
  for (size_t h = 0; h < largest_.size(); ++h) {
    largest_[h] = std::max(largest_[h], largest[h]);
  }
}

void QkClip::after_update() {
  const int64_t G = layout_.heads_per_kv();
  for (int64_t kv = 0; kv < layout_.n_kv_heads; ++kv) {
    const auto first = largest_.begin() + kv * G;
    const double highest = *std::max_element(first, first + G);
    if (!(highest > threshold_)) {
      continue;
    }
    const double of_keys = std::sqrt(threshold_ / highest);
    multiply_rows(layout_.slice_offset(layout_.n_heads + kv), of_keys);
    for (int64_t h = kv * G; h < (kv + 1) * G; ++h) {
      const double gamma = std::min(1.0, threshold_ / std::max(threshold_, largest_[static_cast<size_t>(h)]));
      multiply_rows(layout_.slice_offset(h), gamma / of_keys);
    }
  }
  forget();
}

void QkClip::forget() {
  largest_.assign(static_cast<size_t>(layout_.n_heads), -std::numeric_limits<double>::infinity());
}

/// head_dim rows of the weight, and of the bias.
void QkClip::multiply_rows(int64_t first, double factor) const {
  const auto multiply = [&](const Tensor& values) {
    for (int64_t i = 0; i < values.numel(); ++i) {
      values.set(i, values.at(i) * factor);
    }
  };
  multiply(weight_.value.rows(first, layout_.head_dim));
  if (bias_ != nullptr) {
    multiply(bias_->value.rows(first, layout_.head_dim));
  }
}

}  // namespace minillm
