#include "train/toml_reader.h"

#include "data/user_block.h"

#include <algorithm>
#include <cerrno>
#include <fstream>

namespace minillm {

namespace {

constexpr size_t most_bytes = 1'000'000;  // what is larger is no config; a device might never end

}  // namespace

ConfigValue value_of(const toml::node& node) {
  if (const auto* yes = node.as_boolean()) {
    return {yes->get(), yes->get() ? "true" : "false"};
  }
  if (const auto* integer = node.as_integer()) {
    return {integer->get(), fmt::format("{}", integer->get())};
  }
  if (const auto* number = node.as_floating_point()) {
    const std::string text = fmt::format("{}", number->get());
    return {number->get(), text.find_first_of(".en") == std::string::npos ? text + ".0" : text};
  }
  if (const auto* text = node.as_string()) {
    return {text->get(), "the string " + toml_quoted(text->get())};
  }
  if (node.is_table()) {
    return {{}, "a table"};
  }
  return {{}, node.is_array() ? "an array" : "a date or time"};
}

std::vector<TomlEntry> entries_by_line(const toml::table& table) {
  std::vector<TomlEntry> entries;
  for (auto&& [key, node] : table) {
    entries.push_back({std::string(key.str()), key.source().begin.line, &node});
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const TomlEntry& a, const TomlEntry& b) { return a.line < b.line; });
  return entries;
}

std::variant<std::string, Problem> read_toml_text(const std::filesystem::path& path, const std::string& noun,
                                                  const std::string& where) {
  const std::string found = where == path.string() ? "" : path.empty() ? "\"\"" : path.string();
  std::error_code no_folder;
  if (std::filesystem::is_directory(path, no_folder)) {
    return Problem{.where = where, .what = fmt::format("a folder, not a {} file", noun), .found = found};
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(most_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (!file.is_open() || file.bad()) {
    return Problem{
        .where = where, .what = fmt::format("cannot read the {}: {}", noun, system_error_text(errno)), .found = found};
  }
  const std::string kind = guess_file_kind(text.substr(0, UserBlock::size), text.size());
  const bool is_text = text.find('\0') == std::string::npos && kind != "a minillm file";
  if (!is_text || text.size() > most_bytes) {
    return Problem{.where = where,
                   .what = fmt::format("is not a {} file", noun),
                   .found = is_text          ? "a very long text"
                            : kind == "text" ? "text with NUL bytes"
                                             : kind,
                   .expected = fmt::format("TOML text, at most {} bytes", most_bytes)};
  }
  return text;
}

Problem problem_of(const toml::parse_error& error, const std::string& source) {
  return {.where = fmt::format("{}:{}", source, error.source().begin.line),
          .what = "not valid TOML",
          .found = std::string(error.description())};
}

}  // namespace minillm
