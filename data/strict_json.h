#pragma once
// JSON of other tools' files, parsed with two refusals a plain parse lacks: a key given twice, of which the last would
// win silently, and nesting deeper than such a file has, where memory would grow with every bracket and printing a
// value would exhaust the stack.

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace minillm {

/// What a kind of file is like, and what messages call it.
struct JsonKind {
  std::string_view subject;          ///< "the safetensors header ", or "" where the path in front says it all
  std::string_view top_key = "key";  ///< what a key of the outermost object is: "tensor"
  int most_depth = 0;                ///< of brackets inside the outermost ones
  std::string_view deeper_than;      ///< "the format allows"
};

/// Throws an input Error that names `path`: no JSON, a key twice, too deep.
nlohmann::json parse_strictly(std::string_view text, const std::string& path, const JsonKind& kind);

}  // namespace minillm
