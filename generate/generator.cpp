#include "generate/generator.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace minillm {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// Drawn from the first `known` logits of a row of logits [B, V].
int32_t draw(const Tensor& logits, int64_t row, Sampler& sampler, int64_t known) {
  const int64_t width = logits.shape[1];
  const int64_t V = std::min(width, known);
  return logits.dtype == DType::float64 ? sampler.next(logits.as<double>() + row * width, V)
                                        : sampler.next(logits.as<float>() + row * width, V);
}

/// What is known of a text that is being written.
class Writing {
 public:
  Writing(Generation& result, TokenRules rules, int64_t max_tokens)
      : result_(result), rules_(rules), max_tokens_(max_tokens) {
    result_.stopped_by = "max-tokens";
  }

  /// Whether one more token is wanted and `unread` of them fit what is left.
  bool goes_on(int64_t unread, int64_t room) {
    if (static_cast<int64_t>(result_.tokens.size()) >= max_tokens_) {
      return false;
    }
    return unread <= room || end("context");
  }

  /// False: the token ends the text.
  bool take(int32_t token) {
    if (token == rules_.bos || token == rules_.eos) {
      result_.last_was_read = true;
      return end("end of text");
    }
    result_.tokens.push_back(token);
    return true;
  }

  bool end(std::string_view by) {
    result_.stopped_by = by;
    return false;
  }

 private:
  Generation& result_;
  TokenRules rules_;
  int64_t max_tokens_;
};

/// Texts that are written in turn, a token of each in one pass.
class SideBySide {
 public:
  SideBySide(const Transformer& model, std::span<Sampler> samplers, int64_t max_tokens, TokenRules rules,
             TapeOptions options)
      : decoder_(model, options),
        samplers_(samplers),
        results_(samplers.size()),
        max_tokens_(std::min(max_tokens, model.config().max_seq_len)),
        rules_(rules) {
    for (Generation& result : results_) {
      writings_.emplace_back(result, rules, max_tokens);
    }
  }

  /// Reads the next text's prompt and draws its first token.
  void begin(std::span<const int32_t> prompt) {
    const Clock::time_point start = Clock::now();
    const auto size = static_cast<int64_t>(prompt.size());
    const size_t i = decoder_.add_sequence(size + max_tokens_);
    if (writings_[i].goes_on(size, decoder_.room(i)) && take(i, decoder_.read(prompt, i), 0)) {
      going_.push_back(i);
    }
    results_[i].prefill_seconds = seconds_between(start, Clock::now());
  }

  /// The next token of each text that goes on. False: none does.
  bool write_one_each() {
    const Clock::time_point start = Clock::now();
    std::erase_if(going_, [&](size_t i) { return !writings_[i].goes_on(1, decoder_.room(i)); });
    if (going_.empty()) {
      return false;
    }
    last_.clear();
    for (const size_t i : going_) {
      last_.push_back(results_[i].tokens.back());
    }
    const Tensor logits = decoder_.read_one_each(going_, last_);
    std::vector<size_t> still;
    for (size_t row = 0; row < going_.size(); ++row) {
      const size_t i = going_[row];
      if (take(i, logits, static_cast<int64_t>(row))) {
        still.push_back(i);
      }
      results_[i].decode_seconds += seconds_between(start, Clock::now());
    }
    going_ = std::move(still);
    return true;
  }

  std::vector<Generation> take_results() { return std::move(results_); }

 private:
  bool take(size_t i, const Tensor& logits, int64_t row) {
    return writings_[i].take(draw(logits, row, samplers_[i], rules_.vocab_size));
  }

  Decoder decoder_;
  std::span<Sampler> samplers_;
  std::vector<Generation> results_;
  std::vector<Writing> writings_;
  std::vector<size_t> going_;  // texts that are not at their end
  std::vector<int32_t> last_;  // their last tokens
  int64_t max_tokens_;
  TokenRules rules_;
};

}  // namespace

TokenRules rules_of(const Tokenizer& tokenizer) {
  return {tokenizer.bos_id(), tokenizer.eos_id(), tokenizer.vocab_size()};
}

void check_prompt(const Transformer& model, std::span<const int32_t> prompt) {
  check_writes_text(model);
  const size_t limit = static_cast<size_t>(model.config().max_seq_len);
  if (prompt.empty() || prompt.size() > limit) {
    fail_input({.where = "--prompt",
                .what = "does not fit the model's context",
                .found = fmt::format("{} tokens, <s> among them", prompt.size()),
                .expected = fmt::format("1 to {} (model.max_seq_len)", limit)});
  }
}

Generation continue_text(Decoder& decoder, std::span<const int32_t> unread, int64_t max_tokens, Sampler& sampler,
                         TokenRules rules, const std::function<bool(int32_t)>& on_token) {
  Generation result;
  Writing writing(result, rules, max_tokens);
  const Clock::time_point begin = Clock::now();
  Clock::time_point first_done = begin;
  while (writing.goes_on(static_cast<int64_t>(unread.size()), decoder.room())) {
    const int32_t token = draw(decoder.read(unread), 0, sampler, rules.vocab_size);
    first_done = result.tokens.empty() ? Clock::now() : first_done;
    if (!writing.take(token)) {
      break;
    }
    unread = {&result.tokens.back(), 1};
    if (on_token && !on_token(token)) {
      writing.end("caller");
      break;
    }
  }
  result.prefill_seconds = seconds_between(begin, first_done);
  result.decode_seconds = seconds_between(first_done, Clock::now());
  return result;
}

std::vector<Generation> generate_batch(const Transformer& model, std::span<const std::vector<int32_t>> prompts,
                                       int64_t max_tokens, std::span<Sampler> samplers, TokenRules rules,
                                       TapeOptions options) {
  check(samplers.size() == prompts.size(), "{} prompts have {} samplers", prompts.size(), samplers.size());
  for (const std::vector<int32_t>& prompt : prompts) {
    check_prompt(model, prompt);
  }
  SideBySide texts(model, samplers, max_tokens, rules, options);
  for (const std::vector<int32_t>& prompt : prompts) {
    texts.begin(prompt);
  }
  while (texts.write_one_each()) {
  }
  return texts.take_results();
}

Generation generate(const Transformer& model, std::span<const int32_t> prompt, int64_t max_tokens, Sampler& sampler,
                    TokenRules rules, TapeOptions options, const std::function<void(int32_t)>& on_token) {
  check_prompt(model, prompt);
  const int64_t new_tokens = std::min(max_tokens, model.config().max_seq_len);
  Decoder decoder(model, static_cast<int64_t>(prompt.size()) + new_tokens, options);
  return continue_text(decoder, prompt, max_tokens, sampler, rules, [&](int32_t token) {
    if (on_token) {
      on_token(token);
    }
    return true;
  });
}

}  // namespace minillm
