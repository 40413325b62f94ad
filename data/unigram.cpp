#include "data/unigram.h"

#include "core/error.h"

#include <cmath>
#include <limits>

namespace minillm {

double unigram_loss(const std::vector<int64_t>& train_counts, const std::vector<int64_t>& val_counts) {
  check(train_counts.size() == val_counts.size(), "unigram counts of two vocabularies: {} and {}", train_counts.size(),
        val_counts.size());
  double train_tokens = 0;
  double val_tokens = 0;
  for (size_t id = 0; id < train_counts.size(); ++id) {
    train_tokens += static_cast<double>(train_counts[id]);
    val_tokens += static_cast<double>(val_counts[id]);
  }
  if (val_tokens == 0) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double denominator = train_tokens + 0.5 * static_cast<double>(train_counts.size());
  double loss = 0;
  for (size_t id = 0; id < train_counts.size(); ++id) {
    if (val_counts[id] > 0) {
      const double probability = (static_cast<double>(train_counts[id]) + 0.5) / denominator;
      loss -= static_cast<double>(val_counts[id]) * std::log(probability);
    }
  }
  return loss / val_tokens;
}

}  // namespace minillm
