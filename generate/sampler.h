#pragma once
// From logits to the next token.

#include "core/rng.h"

#include <cstdint>
#include <vector>

namespace minillm {

/// How a token is chosen, applied in this order:
///
/// | option      | value              | meaning                                                                     |
/// |-------------|--------------------|-----------------------------------------------------------------------------|
/// | temperature | 0, or below 1e-6   | greedy: the largest logit, the lowest id among equals; the rest is not used  |
/// |             | T                  | p = softmax(logits / T)                                                      |
/// |             | negative, NaN, inf | refused                                                                      |
/// | top_k       | 0                  | off                                                                          |
/// |             | 1                  | the most likely token                                                        |
/// |             | k                  | the k most likely tokens, the lowest ids among equals                        |
/// |             | V or more          | as V: every token                                                            |
/// |             | negative           | refused                                                                      |
/// | top_p       | 1                  | off                                                                          |
/// |             | p in (0, 1)        | the fewest of the most likely tokens whose probabilities together exceed p   |
/// |             |                    | (after top_k, renormalised)                                                  |
/// |             | 0                  | the most likely token                                                        |
/// |             | < 0, > 1, NaN      | refused                                                                      |
struct SamplerOptions {
  double temperature = 1;
  int64_t top_k = 0;
  double top_p = 0.9;
};

/// Throws an input Error that names --temperature, --top-k or --top-p.
void check_sampler_options(const SamplerOptions& options);

/// Draws tokens from a stream that the seed alone determines: the same logits and seed give the same tokens, up to
/// the last bit of the C library's exp.
class Sampler {
 public:
  Sampler(const SamplerOptions& options, uint64_t seed);

  /// The next token for V logits. -infinity means never. Throws a work Error when a logit is NaN or +infinity, or none
  /// is finite: the model has diverged.
  int32_t next(const float* logits, int64_t V);
  int32_t next(const double* logits, int64_t V);

  /// The distribution `next` draws from: V probabilities, 0 for tokens that are cut.
  std::vector<double> probabilities(const double* logits, int64_t V);

 private:
  struct Candidate {
    int32_t token;
    double weight;  // exp((logit - largest) / temperature): 1 for the most likely, never overflows
  };

  template <class T>
  int32_t choose(const T* logits, int64_t V);
  template <class T>
  void collect_candidates(const T* logits, int64_t V, int32_t best);
  /// A total order: the lower id among equals.
  static bool more_likely(const Candidate& a, const Candidate& b);
  double total_weight() const;
  void keep_top_k();
  void keep_top_p();

  SamplerOptions options_;
  RandomStream stream_;
  std::vector<Candidate> candidates_;  // kept between calls: no allocation a token
};

}  // namespace minillm
