#pragma once
// The unigram loss: what a model reaches that knows how often each token occurs and nothing else. A run that stays
// there has learned no context.

#include <cstdint>
#include <vector>

namespace minillm {

/// Mean nats per token of the validation counts under training counts smoothed by add-1/2,
/// p(v) = (train[v] + 1/2) / (sum(train) + V/2). NaN when there are no validation tokens.
double unigram_loss(const std::vector<int64_t>& train_counts, const std::vector<int64_t>& val_counts);

}  // namespace minillm
