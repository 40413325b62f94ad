#include "core/json_object.h"

#include "core/json_text.h"

#include <fmt/format.h>

namespace minillm {

namespace {

template <class List, class Text>
std::string json_list(const List& values, Text text_of) {
  std::string text = "[";
  for (const auto& value : values) {
    text += (text.size() > 1 ? "," : "") + text_of(value);
  }
  return text + "]";
}

}  // namespace

void JsonObject::add(std::string_view key, double value) {
  add_member(key, json_number(value));
}

void JsonObject::add(std::string_view key, int64_t value) {
  add_member(key, fmt::format("{}", value));
}

void JsonObject::add(std::string_view key, uint64_t value) {
  add_member(key, fmt::format("{}", value));
}

void JsonObject::add(std::string_view key, bool value) {
  add_member(key, value ? "true" : "false");
}

void JsonObject::add(std::string_view key, std::string_view value) {
  add_member(key, json_string(value));
}

void JsonObject::add(std::string_view key, const std::vector<int32_t>& values) {
  add_member(key, json_list(values, [](int32_t value) { return fmt::format("{}", value); }));
}

void JsonObject::add(std::string_view key, const std::vector<double>& values) {
  add_member(key, json_list(values, json_number));
}

void JsonObject::add(std::string_view key, const std::vector<std::string>& values) {
  add_member(key, json_list(values, json_string));
}

void JsonObject::add(std::string_view key, const std::vector<JsonObject>& objects) {
  add_member(key, json_list(objects, [](const JsonObject& object) { return object.text(); }));
}

void JsonObject::add(std::string_view key, const JsonObject& object) {
  add_member(key, object.text());
}

void JsonObject::add_raw(std::string_view key, std::string_view json) {
  add_member(key, json);
}

void JsonObject::add_null(std::string_view key) {
  add_member(key, "null");
}

void JsonObject::add_member(std::string_view key, std::string_view value) {
  members_ += members_.empty() ? "" : ",";
  members_ += json_string(key);
  members_ += ':';
  members_ += value;
}

}  // namespace minillm
