#include "generate/utf8_stream.h"

#include "core/utf8.h"

#include <utility>

namespace minillm {

std::string CharacterStream::feed(std::string_view bytes) {
  pending_ += bytes;
  std::string out;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Utf8Front front = utf8_front(rest);
    if (front.kind == Utf8Front::Kind::cut) {
      break;
    }
    const bool shown = front.kind == Utf8Front::Kind::character || invalid_ == Invalid::keep;
    out += shown ? rest.substr(0, front.bytes) : utf8_replacement;
    rest.remove_prefix(front.bytes);
  }
  pending_ = std::string(rest);
  return out;
}

std::string CharacterStream::flush() {
  const std::string held = std::exchange(pending_, "");
  return invalid_ == Invalid::keep ? held : valid_utf8(held);
}

}  // namespace minillm
