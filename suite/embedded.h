#pragma once
// Files of this folder that are part of the program, so that it needs nothing beside itself. CMake fills them in.

#include <span>
#include <string_view>

namespace minillm {

struct EmbeddedFile {
  std::string_view name;  ///< "report_page.html"
  std::string_view text;
};

/// The .html, .css and .js files of suite/
std::span<const EmbeddedFile> embedded_files();

}  // namespace minillm
