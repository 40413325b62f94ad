#pragma once
// Pages that need nothing beside themselves: a file of this folder, filled with others and with data, as one file.

#include <map>
#include <string>
#include <string_view>

namespace minillm {

/// The embedded file `skeleton` with every key of `values` replaced, and every /*{{FILE}}*/ by the embedded file of
/// that name, in one pass: what is filled in is not looked into.
std::string filled_page(std::string_view skeleton, std::map<std::string, std::string> values);

/// JSON inside a script element: no "<" in it can end the element, or open a comment there.
std::string inside_script(const std::string& json);

/// Throws an input Error rather than let a page or what stands beside it replace a file that holds no `mark`: somebody
/// else put it there. `whose`: "report", for the message.
void check_ours(const std::string& path, std::string_view mark, std::string_view whose);

}  // namespace minillm
