#include "core/json_text.h"

#include "core/utf8.h"

#include <fmt/format.h>

#include <cmath>

namespace minillm {

std::string json_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : valid_utf8(text)) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += fmt::format("\\u{:04x}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace minillm
