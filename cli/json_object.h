#pragma once
// What --json prints: one object, its keys in the order they were added.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace minillm::cli {

/// Builds JSON text. Doubles are the shortest text that reads back to the same value, NaN and infinities null; text
/// that is not UTF-8 gets U+FFFD for what is wrong, so the result is valid JSON whatever a model generates.
class JsonObject {
 public:
  void add(std::string_view key, double value);
  void add(std::string_view key, int64_t value);
  void add(std::string_view key, uint64_t value);
  void add(std::string_view key, bool value);
  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }
  void add(std::string_view key, const std::vector<int32_t>& values);
  void add(std::string_view key, const std::vector<JsonObject>& objects);
  void add(std::string_view key, const JsonObject& object);
  void add_raw(std::string_view key, std::string_view json);  ///< text that is a JSON value already
  void add_null(std::string_view key);

  std::string text() const { return "{" + members_ + "}"; }  ///< without a line end

 private:
  void add_member(std::string_view key, std::string_view value);

  std::string members_;
};

/// The text as a JSON string, with its quotes.
std::string json_string(std::string_view text);

}  // namespace minillm::cli
