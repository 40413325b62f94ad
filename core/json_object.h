#pragma once
// What --json prints: one object, its keys in the order they were added.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

/// Builds JSON text, with the numbers and strings of core/json_text.h: valid JSON whatever a model generates.
class JsonObject {
 public:
  void add(std::string_view key, double value);
  void add(std::string_view key, int64_t value);
  void add(std::string_view key, uint64_t value);
  void add(std::string_view key, bool value);
  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }
  void add(std::string_view key, const std::vector<int32_t>& values);
  void add(std::string_view key, const std::vector<double>& values);
  void add(std::string_view key, const std::vector<std::string>& values);
  void add(std::string_view key, const std::vector<JsonObject>& objects);
  void add(std::string_view key, const JsonObject& object);
  void add_raw(std::string_view key, std::string_view json);  ///< text that is a JSON value already
  void add_null(std::string_view key);

  std::string text() const { return "{" + members_ + "}"; }  ///< without a line end

 private:
  void add_member(std::string_view key, std::string_view value);

  std::string members_;
};

}  // namespace minillm
