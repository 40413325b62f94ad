#pragma once
// Cuts text into words by a regular expression, as byte-level BPE does before it joins bytes (PCRE2).

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace minillm {

class WordPattern {
 public:
  /// `pattern` in the syntax that tokenizer.json uses (Oniguruma's, Python's regex): classes are Unicode's, and \s is
  /// its White_Space. Throws an input Error that names `where` when it cannot be compiled.
  WordPattern(const std::string& pattern, const std::string& where);
  ~WordPattern();
  WordPattern(WordPattern&&) noexcept;
  WordPattern& operator=(WordPattern&&) noexcept;

  const std::string& pattern() const { return pattern_; }

  /// Where the first word of `text` (well-formed UTF-8, not empty) from `begin` on ends: a match that begins there, or
  /// what lies in front of the next match. Safe to call from several threads.
  size_t word_end(std::string_view text, size_t begin) const;

 private:
  struct Compiled;
  std::string pattern_;
  std::unique_ptr<Compiled> compiled_;
};

/// GPT-2's: contractions, words and numbers with the blank in front of them, other signs, blanks.
inline constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace minillm
