#include "nn/qk_clip.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace minillm {

namespace {

/// A head's rows of the weight, and of the bias.
void multiply_head(const HeadRows& rows, int64_t head, double factor) {
  for (const Parameter* parameter : {rows.weight, rows.bias}) {
    if (parameter != nullptr) {
      const Tensor values = parameter->value.rows(rows.first + head * rows.stride, rows.count);
      for (int64_t i = 0; i < values.numel(); ++i) {
        values.set(i, values.at(i) * factor);
      }
    }
  }
}

}  // namespace

QkClip::QkClip(double threshold, ParameterStore& store, int64_t n_heads, int64_t n_kv_heads,
               std::vector<ScoreRows> parts)
    : threshold_(threshold), n_heads_(n_heads), n_kv_heads_(n_kv_heads), parts_(std::move(parts)) {
  store.follow_updates(*this);
  forget();
}

void QkClip::observe(Var qkv, Var attended, const QkvLayout& layout, bool causal) {
  const TapeOptions& options = qkv.tape().options();
  if (!options.record || !options.training) {
    return;
  }
  const std::vector<double> largest = largest_scores(qkv, attended, layout, causal);
  for (size_t h = 0; h < largest_.size(); ++h) {
    largest_[h] = std::max(largest_[h], largest[h]);
  }
}

void QkClip::after_update() {
  const int64_t G = n_heads_ / n_kv_heads_;
  for (int64_t kv = 0; kv < n_kv_heads_; ++kv) {
    const auto first = largest_.begin() + kv * G;
    const double highest = *std::max_element(first, first + G);
    if (!(highest > threshold_)) {
      continue;
    }
    for (const ScoreRows& part : parts_) {
      const double of_keys = part.keys.weight == nullptr ? 1 : std::sqrt(threshold_ / highest);
      multiply_head(part.keys, kv, of_keys);
      for (int64_t h = kv * G; h < (kv + 1) * G; ++h) {
        const double gamma = std::min(1.0, threshold_ / std::max(threshold_, largest_[static_cast<size_t>(h)]));
        multiply_head(part.queries, h, gamma / of_keys);
      }
    }
  }
  forget();
}

void QkClip::forget() {
  largest_.assign(static_cast<size_t>(n_heads_), -std::numeric_limits<double>::infinity());
}

}  // namespace minillm
