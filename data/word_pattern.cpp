#define PCRE2_CODE_UNIT_WIDTH 8
#include "data/word_pattern.h"

#include "core/error.h"
#include "core/text.h"

#include <pcre2.h>

#include <array>

namespace minillm {

namespace {

struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

/// PCRE2's \s also takes U+180E, which is no White_Space since Unicode 6.3.
std::string with_white_space(const std::string& pattern) {
  std::string result;
  for (size_t at = 0; at < pattern.size(); ++at) {
    const char next = pattern[at] == '\\' && at + 1 < pattern.size() ? pattern[at + 1] : '\0';
    if (next == 's' || next == 'S') {
      result += next == 's' ? "\\p{White_Space}" : "\\P{White_Space}";
      ++at;
    } else if (next != '\0') {
      result += pattern.substr(at, 2);
      ++at;
    } else {
      result += pattern[at];
    }
  }
  return result;
}

std::string message_of_pcre(int code) {
  std::array<PCRE2_UCHAR, 256> text = {};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

struct WordPattern::Compiled {
  struct Free {
    void operator()(pcre2_code* pattern) const { pcre2_code_free(pattern); }
  };
  std::unique_ptr<pcre2_code, Free> code;
};

WordPattern::WordPattern(const std::string& pattern, const std::string& where)
    : pattern_(pattern), compiled_(std::make_unique<Compiled>()) {
  const std::string text = with_white_space(pattern);
  int error = 0;
  size_t offset = 0;
  compiled_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), PCRE2_UTF | PCRE2_UCP,
                                      &error, &offset, nullptr));
  if (compiled_->code == nullptr) {
    fail_input({.where = where,
                .what = "the regular expression that cuts words cannot be used: " + message_of_pcre(error),
                .found = printable(pattern, 200)});
  }
  pcre2_jit_compile(compiled_->code.get(), PCRE2_JIT_COMPLETE);  // where it cannot, matching interprets
}

WordPattern::~WordPattern() = default;
WordPattern::WordPattern(WordPattern&&) noexcept = default;
WordPattern& WordPattern::operator=(WordPattern&&) noexcept = default;

size_t WordPattern::word_end(std::string_view text, size_t begin) const {
  // One for each thread: the two numbers of a match's range.
  thread_local const std::unique_ptr<pcre2_match_data, FreeMatch> match(pcre2_match_data_create(1, nullptr));
  const int found = pcre2_match(compiled_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), begin,
                                PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, match.get(), nullptr);
  if (found == PCRE2_ERROR_NOMATCH) {
    return text.size();
  }
  if (found < 0) {
    fail_work({.where = "tokenizer", .what = "cutting the text into words failed: " + message_of_pcre(found)});
  }
  const size_t* range = pcre2_get_ovector_pointer(match.get());
  return range[0] > begin ? range[0] : range[1];
}

}  // namespace minillm
