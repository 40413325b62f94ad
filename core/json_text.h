#pragma once
// Numbers and strings as JSON, for what is written line by line; nothing is parsed here.

#include <string>
#include <string_view>

namespace minillm {

/// The shortest text that reads back to the same value; "null" for NaN and infinities, which JSON does not have.
std::string json_number(double value);

/// The text with its quotes, on one line; what is not UTF-8 becomes U+FFFD, so the result is JSON whatever the bytes.
std::string json_string(std::string_view text);

}  // namespace minillm
