#include "generate/utf8_stream.h"

namespace minillm {

std::string CharacterStream::feed(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) {
    take(static_cast<unsigned char>(byte), out);
  }
  return out;
}

std::string CharacterStream::flush() {
  std::string out;
  reject(out);
  return out;
}

// The well-formed sequences are those of Unicode 15, table 3-7. Only the second byte's range depends on the first:
// it excludes overlong forms (E0, F0), surrogates (ED) and what lies beyond U+10FFFF (F4).
void CharacterStream::take(unsigned char byte, std::string& out) {
  if (missing_ > 0 && byte >= low_ && byte <= high_) {
    pending_ += static_cast<char>(byte);
    low_ = 0x80;
    high_ = 0xbf;
    if (--missing_ == 0) {
      out += pending_;
      pending_.clear();
    }
    return;
  }
  reject(out);  // the byte may begin the next character
  if (byte < 0x80) {
    out += static_cast<char>(byte);
    return;
  }
  pending_ = static_cast<char>(byte);
  missing_ = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1;
  low_ = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
  high_ = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
  if (byte < 0xc2 || byte > 0xf4) {
    reject(out);
  }
}

void CharacterStream::reject(std::string& out) {
  if (!pending_.empty()) {
    out += invalid_ == Invalid::replace ? "\xef\xbf\xbd" : pending_;
  }
  pending_.clear();
  missing_ = 0;
}

std::string valid_utf8(std::string_view bytes) {
  CharacterStream stream;
  std::string text = stream.feed(bytes);
  return text + stream.flush();
}

}  // namespace minillm
