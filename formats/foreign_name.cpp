#include "formats/foreign_name.h"

namespace minillm {

NameInLayer split_layer(std::string_view name) {
  constexpr std::string_view start = "model.layers.";
  if (!name.starts_with(start)) {
    return {"", name};
  }
  const std::string_view rest = name.substr(start.size());
  const size_t dot = rest.find('.');
  return dot == std::string_view::npos ? NameInLayer{"", name} : NameInLayer{rest.substr(0, dot), rest.substr(dot + 1)};
}

}  // namespace minillm
