#pragma once
// UTF-8 (RFC 3629): well-formed characters, places where text may be cut, and streams that must not print half of one.

#include <cstddef>
#include <string>
#include <string_view>

namespace minillm {

/// Bytes of the well-formed character at the front of `text` (1 to 4); 0 when there is none: a stray or missing
/// continuation byte, an overlong form, a surrogate, beyond U+10FFFF.
size_t utf8_character(std::string_view text);

/// How many bytes to take from the front of `text` so that the piece is at most `most` (>= 8) bytes: up to a blank that
/// follows a word if there is one, else up to the end of a character.
size_t utf8_cut(std::string_view text, size_t most);

/// Bytes arrive token by token; what comes out is whole characters. Bytes that can never become one pass unchanged.
class Utf8Stream {
 public:
  /// What can be printed after these bytes; an unfinished character waits.
  std::string push(std::string_view bytes);

  /// The unfinished tail, as it is.
  std::string finish();

 private:
  std::string waiting_;
};

}  // namespace minillm
