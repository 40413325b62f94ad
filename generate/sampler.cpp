#include "generate/sampler.h"

#include "core/error.h"

#include <algorithm>
#include <cmath>

namespace minillm {

namespace {

// Below it (l_i - l_max) / T separates any two float logits by more than exp can show: greedy says the same, and ties
// are resolved by id rather than by chance.
constexpr double greedy_below = 1e-6;

void require(bool ok, const char* option, double value, const char* expected) {
  if (!ok) {
    fail_input({.where = option,
                .what = "the value is out of range",
                .found = fmt::format("{}", value),
                .expected = expected});
  }
}

/// The largest logit, the lowest id among equals.
template <class T>
int32_t most_likely(const T* logits, int64_t V) {
  check(V >= 1 && V <= INT32_MAX, "a token is drawn from at least one logit; found {}", V);
  int64_t best = 0;
  for (int64_t i = 0; i < V; ++i) {
    if (std::isnan(logits[i]) || (std::isinf(logits[i]) && logits[i] > 0)) {
      fail_work({.what = fmt::format("the logit of token {} is {}", i, logits[i]),
                 .expected = "a finite number",
                 .hint = "the model has diverged, or its weights are damaged"});
    }
    if (logits[i] > logits[best]) {
      best = i;
    }
  }
  if (std::isinf(logits[best])) {
    fail_work({.what = "every logit is -infinity", .hint = "the model has diverged, or its weights are damaged"});
  }
  return static_cast<int32_t>(best);
}

}  // namespace

void check_sampler_options(const SamplerOptions& options) {
  require(std::isfinite(options.temperature) && options.temperature >= 0, "--temperature", options.temperature,
          "a finite number from 0 (0 = always the most likely token)");
  require(options.top_k >= 0, "--top-k", static_cast<double>(options.top_k), "a whole number from 0 (0 = off)");
  require(options.top_p >= 0 && options.top_p <= 1, "--top-p", options.top_p,
          "a number from 0 (the most likely token) to 1 (off)");
}

Sampler::Sampler(const SamplerOptions& options, uint64_t seed)
    : options_(options), stream_(random_key(seed, "sample")) {
  check_sampler_options(options);
}

int32_t Sampler::next(const float* logits, int64_t V) {
  return choose(logits, V);
}

int32_t Sampler::next(const double* logits, int64_t V) {
  return choose(logits, V);
}

template <class T>
int32_t Sampler::choose(const T* logits, int64_t V) {
  const int32_t best = most_likely(logits, V);
  collect_candidates(logits, V, best);
  const double total = total_weight();
  const double drawn = stream_.uniform() * total;
  double cumulative = 0;
  int32_t token = best;
  for (const Candidate& candidate : candidates_) {
    cumulative += candidate.weight;
    if (candidate.weight > 0) {
      token = candidate.token;  // the last possible one, should rounding leave `drawn` at the very end
    }
    if (cumulative > drawn) {
      break;
    }
  }
  return token;
}

std::vector<double> Sampler::probabilities(const double* logits, int64_t V) {
  collect_candidates(logits, V, most_likely(logits, V));
  const double total = total_weight();
  std::vector<double> result(static_cast<size_t>(V), 0.0);
  for (const Candidate& candidate : candidates_) {
    result[static_cast<size_t>(candidate.token)] = candidate.weight / total;
  }
  return result;
}

template <class T>
void Sampler::collect_candidates(const T* logits, int64_t V, int32_t best) {
  candidates_.clear();
  const bool greedy = options_.temperature < greedy_below || options_.top_k == 1 || options_.top_p == 0;
  if (greedy) {
    candidates_.push_back({best, 1.0});
    return;
  }
  const double largest = static_cast<double>(logits[best]);
  for (int64_t i = 0; i < V; ++i) {
    const double weight = std::exp((static_cast<double>(logits[i]) - largest) / options_.temperature);
    candidates_.push_back({static_cast<int32_t>(i), weight});
  }
  keep_top_k();
  keep_top_p();
}

bool Sampler::more_likely(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
}

double Sampler::total_weight() const {
  double total = 0;
  for (const Candidate& candidate : candidates_) {
    total += candidate.weight;
  }
  return total;
}

void Sampler::keep_top_k() {
  const size_t k = static_cast<size_t>(options_.top_k);
  if (k == 0 || k >= candidates_.size()) {
    return;
  }
  std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(k), candidates_.end(),
                   more_likely);
  candidates_.resize(k);
  // nth_element leaves an order that depends on the library; draws must not.
  std::sort(candidates_.begin(), candidates_.end(), more_likely);
}

void Sampler::keep_top_p() {
  if (options_.top_p >= 1) {
    return;
  }
  std::sort(candidates_.begin(), candidates_.end(), more_likely);
  const double total = total_weight();
  double cumulative = 0;
  size_t kept = 0;
  while (kept < candidates_.size() && cumulative <= options_.top_p * total) {
    cumulative += candidates_[kept].weight;
    ++kept;
  }
  candidates_.resize(kept);
}

}  // namespace minillm
