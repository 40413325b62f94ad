#pragma once
// Text from a model, one token at a time.

#include "data/tokenizer.h"
#include "generate/sampler.h"
#include "nn/transformer.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace minillm {

/// What a tokenizer says about ids: `bos` and `eos` end a text (-1: none), and ids from vocab_size on, which a model
/// may have as padding, stand for nothing and are never drawn.
struct TokenRules {
  int32_t bos = -1;
  int32_t eos = -1;
  int64_t vocab_size = INT64_MAX;
};
TokenRules rules_of(const Tokenizer& tokenizer);

struct Generation {
  std::vector<int32_t> tokens;  ///< new ones, the end token not among them
  std::string_view stopped_by;  ///< "end of text", "max-tokens" or "context": why there are no more
  double prefill_seconds = 0;   ///< reading the prompt, up to the first logits
  double decode_seconds = 0;    ///< the rest
};

/// Throws an input Error when the prompt is empty or longer than the context, or the model is not causal.
void check_prompt(const Transformer& model, std::span<const int32_t> prompt);

/// Continues `prompt` (ids, `<s>` first) until an end token, `max_tokens` new ones or the model's last position; the
/// token drawn at the last position is the last. `on_token` is called with each new token as it is drawn. The
/// prompt is checked as by check_prompt. Every token runs the whole context again.
Generation generate(const Transformer& model, std::span<const int32_t> prompt, int64_t max_tokens, Sampler& sampler,
                    TokenRules rules, TapeOptions options, const std::function<void(int32_t)>& on_token = {});

}  // namespace minillm
