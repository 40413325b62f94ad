#pragma once
// How fast a model writes: its time for a prompt and for each token, beside what the machine can read.

#include "autograd/decoding_weights.h"
#include "nn/transformer.h"

#include <cstdint>
#include <functional>

namespace minillm {

/// docs/numbers.md defines each number.
struct DecodeBenchResult {
  int64_t prompt_tokens = 0;
  int64_t tokens = 0;               ///< behind the prompt, the ones that are counted
  double prefill_seconds = 0;       ///< the best of some passes over the prompt
  double token_seconds = 0;         ///< the median over tokens
  double weight_bytes = 0;          ///< that one token reads
  double read_gigabytes_per_s = 0;  ///< measured on as many bytes: the better of a probe before and one behind

  double prefill_tokens_per_second() const { return static_cast<double>(prompt_tokens) / prefill_seconds; }
  double tokens_per_second() const { return 1 / token_seconds; }
  /// The share of the machine's reading that weights alone are.
  double share_of_reading() const { return weight_bytes / token_seconds / 1e9 / read_gigabytes_per_s; }
};

/// Reads random tokens one by one behind a prompt, up to `prompt_tokens` + `tokens` positions or the model's last.
/// `rounded`: what the decoder multiplies by; null: the weights as they are. `after_warmup` (nullptr: none) is called
/// with a function that reads one token. The model is checked as by check_writes_text.
DecodeBenchResult decode_bench(const Transformer& model, const DecodingWeights* rounded, int64_t prompt_tokens,
                               int64_t tokens, TapeOptions options,
                               const std::function<void(const std::function<void()>&)>& after_warmup = nullptr);

}  // namespace minillm
