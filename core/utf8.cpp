#include "core/utf8.h"

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

Utf8Front utf8_front(std::string_view text) {
  const unsigned char first = static_cast<unsigned char>(text[0]);
  const size_t length = announced_length(first);
  size_t good = 1;
  while (good < length && good < text.size()) {
    const bool fits =
        good == 1 ? second_byte_fits(first, static_cast<unsigned char>(text[1])) : is_continuation(text[good]);
    if (!fits) {
      return {Utf8Front::Kind::wrong, good};
    }
    ++good;
  }
  if (length == 0) {
    return {Utf8Front::Kind::wrong, 1};
  }
  return {good == length ? Utf8Front::Kind::character : Utf8Front::Kind::cut, good};
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const Utf8Front front = utf8_front(text);
    valid += front.kind == Utf8Front::Kind::character ? text.substr(0, front.bytes) : utf8_replacement;
    text.remove_prefix(front.bytes);
  }
  return valid;
}

size_t utf8_character(std::string_view text) {
  if (text.empty()) {
    return 0;
  }
  const Utf8Front front = utf8_front(text);
  return front.kind == Utf8Front::Kind::character ? front.bytes : 0;
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
