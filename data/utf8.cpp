#include "data/utf8.h"

#include <cstdint>

namespace minillm {

namespace {

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

/// Bytes a character has according to its first byte; 0 for a byte that starts none.
size_t announced_length(unsigned char first) {
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xc2 && first <= 0xdf) {
    return 2;
  }
  if (first >= 0xe0 && first <= 0xef) {
    return 3;
  }
  return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/// The second byte decides about overlong forms, surrogates and the upper end (RFC 3629, section 4).
bool second_byte_fits(unsigned char first, unsigned char second) {
  switch (first) {
    case 0xe0: return second >= 0xa0 && second <= 0xbf;
    case 0xed: return second >= 0x80 && second <= 0x9f;
    case 0xf0: return second >= 0x90 && second <= 0xbf;
    case 0xf4: return second >= 0x80 && second <= 0x8f;
    default: return second >= 0x80 && second <= 0xbf;
  }
}

}  // namespace

size_t utf8_character(std::string_view text) {
  if (text.empty()) {
    return 0;
  }
  const unsigned char first = static_cast<unsigned char>(text[0]);
  const size_t length = announced_length(first);
  if (length == 0 || text.size() < length) {
    return 0;
  }
  if (length >= 2 && !second_byte_fits(first, static_cast<unsigned char>(text[1]))) {
    return 0;
  }
  for (size_t i = 2; i < length; ++i) {
    if (!is_continuation(text[i])) {
      return 0;
    }
  }
  return length;
}

size_t utf8_cut(std::string_view text, size_t most) {
  if (text.size() <= most) {
    return text.size();
  }
  for (size_t end = most; end > 0; --end) {
    if (text[end] == ' ' && text[end - 1] != ' ') {
      return end;
    }
  }
  // A character has at most three continuation bytes; more are not text, and any place is as good as another.
  size_t end = most;
  while (end > most - 4 && is_continuation(text[end])) {
    --end;
  }
  return end;
}

}  // namespace minillm
