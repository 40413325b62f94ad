#include "suite/page.h"

#include "core/error.h"
#include "suite/embedded.h"
#include "train/line_log.h"

#include <algorithm>

namespace minillm {

std::string filled_page(std::string_view skeleton, std::map<std::string, std::string> values) {
  std::string_view page;
  for (const EmbeddedFile& file : embedded_files()) {
    values[fmt::format("/*{{{{{}}}}}*/", file.name)] = std::string(file.text);
    page = file.name == skeleton ? file.text : page;
  }
  check(!page.empty(), "the program has no page {}", skeleton);
  std::string text;
  for (size_t at = 0; at < page.size();) {
    const auto here = std::find_if(values.begin(), values.end(),
                                   [&](const auto& value) { return page.substr(at).starts_with(value.first); });
    text += here == values.end() ? page.substr(at, 1) : std::string_view(here->second);
    at += here == values.end() ? 1 : here->first.size();
  }
  return text;
}

std::string inside_script(const std::string& json) {
  std::string text;
  for (const char c : json) {
    text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  }
  return text;
}

void check_ours(const std::string& path, std::string_view mark, std::string_view whose) {
  const std::string text = read_text(path);
  if (!text.empty() && text.find(mark) == std::string::npos) {
    fail_input({.where = path,
                .what = fmt::format("stands where the {} belongs, and no {} wrote it", whose, whose),
                .hint = "another folder or name"});
  }
}

}  // namespace minillm
