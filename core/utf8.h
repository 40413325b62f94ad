#pragma once
// UTF-8 (RFC 3629): well-formed characters, and places where text may be cut.

#include <cstddef>
#include <string>
#include <string_view>

namespace minillm {

/// What stands at the front of a text that is not empty.
struct Utf8Front {
  enum class Kind {
    character,  ///< a well-formed character
    cut,        ///< the text ends inside what may become one
    wrong       ///< the longest part that could have begun one, or a byte that begins none
  };
  Kind kind;
  size_t bytes;
};

/// The well-formed sequences are those of Unicode 15, table 3-7; a wrong part is one of section 3.9's maximal subparts.
Utf8Front utf8_front(std::string_view text);

/// What stands for a wrong part: U+FFFD.
inline constexpr std::string_view utf8_replacement = "\xef\xbf\xbd";

/// The text with each part of it that is wrong or cut replaced: Python's and browsers' rule.
std::string valid_utf8(std::string_view text);

/// Bytes of the well-formed character at the front of `text` (1 to 4); 0 when there is none: a stray or missing
/// continuation byte, an overlong form, a surrogate, beyond U+10FFFF.
size_t utf8_character(std::string_view text);

/// How many bytes to take from the front of `text` so that the piece is at most `most` (>= 8) bytes: up to a blank that
/// follows a word if there is one, else up to the end of a character.
size_t utf8_cut(std::string_view text, size_t most);

}  // namespace minillm
