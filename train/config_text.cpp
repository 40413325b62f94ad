// The resolved config as text, and what differs between two.

#include "train/config_file.h"

#include <algorithm>

namespace minillm {

namespace {

constexpr size_t comment_column = 40;

/// One line: control characters (a path may hold a line end) are escaped as in a TOML string.
std::string comment(std::string_view text) {
  const std::string quoted = toml_quoted(text);
  return "# " + quoted.substr(1, quoted.size() - 2);
}

std::string line_of(const ConfigKey& key, const Config& config, const ConfigOrigins& origins) {
  const std::string value = toml_text(key, config);
  if (value.empty()) {
    return fmt::format("# {} is not set\n", key.name);
  }
  return fmt::format("{:<{}} {}\n", key.name + " = " + value, comment_column, comment(origin_of(key, config, origins)));
}

/// Whether a section says anything beyond the defaults.
bool is_set(std::string_view section, const Config& config) {
  const std::vector<ConfigKey>& keys = config_keys();
  return std::any_of(keys.begin(), keys.end(), [&](const ConfigKey& key) {
    return key.section == section && toml_text(key, config) != toml_text(key, Config{});
  });
}

}  // namespace

std::string origin_of(const ConfigKey& key, const Config& config, const ConfigOrigins& origins) {
  const auto known = origins.find(key.path());
  if (known != origins.end()) {
    return known->second;
  }
  return toml_text(key, config) == toml_text(key, Config{}) ? "default" : "derived";
}

std::string to_toml(const Config& config, const ConfigOrigins& origins) {
  std::string text = "# The resolved config: every key with its value and where it came from.\n";
  std::string section;
  const bool is_release = is_set("release", config);
  for (const ConfigKey& key : config_keys()) {
    if (key.section == "release" && !is_release) {
      continue;  // of a released model alone; runs have nothing to say about it
    }
    if (key.section != section) {
      section = key.section;
      text += fmt::format("\n[{}]\n", section);
    }
    text += line_of(key, config, origins);
  }
  return text;
}

std::vector<ConfigChange> diff(const Config& before, const Config& after) {
  std::vector<ConfigChange> changes;
  for (const ConfigKey& key : config_keys()) {
    std::string old_value = toml_text(key, before);
    std::string new_value = toml_text(key, after);
    if (old_value != new_value) {
      changes.push_back({key.path(), std::move(old_value), std::move(new_value)});
    }
  }
  return changes;
}

}  // namespace minillm
