#pragma once
// UTF-8 (RFC 3629): well-formed characters, and places where text may be cut.

#include <cstddef>
#include <string_view>

namespace minillm {

/// Bytes of the well-formed character at the front of `text` (1 to 4); 0 when there is none: a stray or missing
/// continuation byte, an overlong form, a surrogate, beyond U+10FFFF.
size_t utf8_character(std::string_view text);

/// How many bytes to take from the front of `text` so that the piece is at most `most` (>= 8) bytes: up to a blank that
/// follows a word if there is one, else up to the end of a character.
size_t utf8_cut(std::string_view text, size_t most);

}  // namespace minillm
