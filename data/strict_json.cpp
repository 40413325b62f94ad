#include "data/strict_json.h"

#include "core/error.h"
#include "core/text.h"

#include <nlohmann/json.hpp>

#include <set>
#include <vector>

namespace minillm {

namespace {

using Json = nlohmann::json;

}  // namespace

Json parse_strictly(std::string_view text, const std::string& path, const JsonKind& kind) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    const bool opens = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth > kind.most_depth) {
      fail_input({.where = path, .what = fmt::format("{}is nested deeper than {}", kind.subject, kind.deeper_than)});
    }
    if (event == Json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      fail_input({.where = path,
                  .what = fmt::format("{}has the {} {} twice", kind.subject, keys.size() == 1 ? kind.top_key : "key",
                                      printable(parsed.get<std::string>()))});
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::exception& error) {
    fail_input(
        {.where = path, .what = fmt::format("{}is not JSON", kind.subject), .found = printable(error.what(), 200)});
  }
}

}  // namespace minillm
