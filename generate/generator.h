#pragma once
// Text from a model, one token at a time.

#include "generate/sampler.h"
#include "nn/transformer.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace minillm {

struct Generation {
  std::vector<int32_t> tokens;    ///< new ones, the end token not among them
  std::string_view stopped_by;    ///< "end of text", "max-tokens" or "context": why there are no more
  double prefill_seconds = 0;     ///< reading the prompt, up to the first logits
  double decode_seconds = 0;      ///< the rest
};

/// Continues `prompt` (ids, `<s>` first) until `<s>`, `</s>`, `max_tokens` new ones or the model's last position.
/// `on_token` is called with each new token as it is drawn. Throws an Error when the prompt is empty or does not leave
/// room for one token. Every token runs the whole context again: O(n^2), fine for short samples.
Generation generate(const Transformer& model, std::span<const int32_t> prompt, int64_t max_tokens, Sampler& sampler,
                    const TapeOptions& options, const std::function<void(int32_t)>& on_token = {});

}  // namespace minillm
