#include "generate/generator.h"

#include <algorithm>
#include <chrono>

namespace minillm {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// The next token after `context`, drawn from the first `known` logits of its last position.
int32_t next_token(const Transformer& model, Tape& tape, std::span<const int32_t> context, Sampler& sampler,
                   int64_t known) {
  tape.clear();
  const Tensor logits = model.next_logits(tape, context).value();
  const int64_t V = std::min(logits.numel(), known);
  return logits.dtype == DType::float64 ? sampler.next(logits.as<double>(), V) : sampler.next(logits.as<float>(), V);
}

}  // namespace

TokenRules rules_of(const Tokenizer& tokenizer) {
  return {tokenizer.bos_id(), tokenizer.eos_id(), tokenizer.vocab_size()};
}

void check_prompt(const Transformer& model, std::span<const int32_t> prompt) {
  if (!model.config().causal) {
    fail_input({.where = "model.causal",
                .what = "a model that was trained to see the tokens behind a position cannot write the next one",
                .found = "false",
                .expected = "a model with causal = true"});
  }
  const size_t limit = static_cast<size_t>(model.config().max_seq_len);
  if (prompt.empty() || prompt.size() > limit) {
    fail_input({.where = "--prompt",
                .what = "does not fit the model's context",
                .found = fmt::format("{} tokens, <s> among them", prompt.size()),
                .expected = fmt::format("1 to {} (model.max_seq_len)", limit)});
  }
}

Generation generate(const Transformer& model, std::span<const int32_t> prompt, int64_t max_tokens, Sampler& sampler,
                    TokenRules rules, TapeOptions options, const std::function<void(int32_t)>& on_token) {
  check_prompt(model, prompt);
  const int64_t limit = model.config().max_seq_len;
  options.record = false;
  options.training = false;
  Tape tape(options);
  std::vector<int32_t> context(prompt.begin(), prompt.end());
  Generation result;
  result.stopped_by = "max-tokens";
  const Clock::time_point begin = Clock::now();
  Clock::time_point first_done = begin;
  for (int64_t drawn = 0; drawn < max_tokens; ++drawn) {
    if (static_cast<int64_t>(context.size()) > limit) {
      result.stopped_by = "context";
      break;
    }
    const int32_t token = next_token(model, tape, context, sampler, rules.vocab_size);
    first_done = drawn == 0 ? Clock::now() : first_done;
    if (token == rules.bos || token == rules.eos) {
      result.stopped_by = "end of text";
      break;
    }
    context.push_back(token);
    result.tokens.push_back(token);
    if (on_token) {
      on_token(token);
    }
  }
  result.prefill_seconds = seconds_between(begin, first_done);
  result.decode_seconds = seconds_between(first_done, Clock::now());
  return result;
}

}  // namespace minillm
