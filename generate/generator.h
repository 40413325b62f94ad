#pragma once
// Text from a model, one token at a time.

#include "data/tokenizer.h"
#include "generate/decoder.h"
#include "generate/sampler.h"

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
  std::string_view stopped_by;  ///< "end of text", "max-tokens", "context" or "caller": why there are no more
  bool last_was_read = false;   ///< by the decoder: to learn that the text ends there
  double prefill_seconds = 0;   ///< reading the prompt, up to the first logits
  double decode_seconds = 0;    ///< the rest
};

/// Throws an input Error when the prompt is empty or longer than the model's context, or as check_writes_text.
void check_prompt(const Transformer& model, std::span<const int32_t> prompt);

/// Reads `unread` (at least one id) and goes on until an end token, `max_tokens` new ones or the decoder's last
/// position; the token drawn behind the last position is the last. Each new token is given to `on_token` as it is
/// drawn; what it returns says whether to go on.
Generation continue_text(Decoder& decoder, std::span<const int32_t> unread, int64_t max_tokens, Sampler& sampler,
                         TokenRules rules, const std::function<bool(int32_t)>& on_token = {});

/// Continues `prompt` (ids, `<s>` first), which is checked as by check_prompt, as far as the model's context goes.
Generation generate(const Transformer& model, std::span<const int32_t> prompt, int64_t max_tokens, Sampler& sampler,
                    TokenRules rules, TapeOptions options, const std::function<void(int32_t)>& on_token = {});

/// The same of several prompts, each with its sampler: a new token of each is drawn in one pass, which reads the
/// weights once. A text is what `generate` makes of its prompt and sampler, up to rounding.
std::vector<Generation> generate_batch(const Transformer& model, std::span<const std::vector<int32_t>> prompts,
                                       int64_t max_tokens, std::span<Sampler> samplers, TokenRules rules,
                                       TapeOptions options);

}  // namespace minillm
