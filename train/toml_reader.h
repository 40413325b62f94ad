#pragma once
// TOML files as this floor reads them: entries in the order of their lines, values with words for messages.

#include "core/error.h"
#include "train/config_keys.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

// toml++ asserts on malformed input in debug builds, where a parse_error is right.
#define TOML_HEADER_ONLY 1
#define TOML_ASSERT(expr) static_cast<void>(0)
#include <toml++/toml.h>

namespace minillm {

/// A value as messages and config keys want it.
ConfigValue value_of(const toml::node& node);

struct TomlEntry {
  std::string name;
  uint32_t line;
  const toml::node* node;
};

/// toml++ keeps tables sorted by name; people read problems by line.
std::vector<TomlEntry> entries_by_line(const toml::table& table);

/// The text of a file that is to be TOML, or why it cannot be. `noun`: "config"; `where`: the file, or what names it.
std::variant<std::string, Problem> read_toml_text(const std::filesystem::path& path, const std::string& noun,
                                                  const std::string& where);

/// What is wrong with a text that is not TOML.
Problem problem_of(const toml::parse_error& error, const std::string& source);

}  // namespace minillm
