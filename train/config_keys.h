#pragma once
// The table of config keys: where each value lives, its type, what it may be. Loading, the resolved config, `check` and
// the comparison at resume all read this one table.

#include "train/train_config.h"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace minillm {

/// A yes/no that may still be underived (-1).
struct OptionalBool {
  int* value;
};

using ConfigField = std::variant<bool*, OptionalBool, int*, int64_t*, uint64_t*, double*, std::string*>;

/// One row of the table.
struct ConfigKey {
  std::string section;                                    ///< "optim"
  std::string name;                                       ///< "lr"
  ConfigField (*field)(Config&);                          ///< where it lives
  double low = -std::numeric_limits<double>::infinity();  ///< smallest value
  double high = std::numeric_limits<double>::infinity();  ///< largest value
  bool low_open = false;                                  ///< the smallest value itself is out
  bool high_open = false;                                 ///< the largest value itself is out
  std::vector<std::string> words = {};  ///< the allowed words, the default first; empty: checked by the owner

  std::string path() const { return section + "." + name; }
};

/// Where each key's value comes from: "optim.lr" -> "configs/tiny.toml:12" or "command line". Absent: the default.
using ConfigOrigins = std::map<std::string, std::string, std::less<>>;

/// Every key, section by section, in the order of the resolved config.
const std::vector<ConfigKey>& config_keys();

/// The row of "optim", "lr", or null.
const ConfigKey* find_key(std::string_view section, std::string_view name);
/// The row of a name in any section but `except`, or null.
const ConfigKey* find_key_elsewhere(std::string_view except, std::string_view name);

std::vector<std::string> section_names();
std::vector<std::string> key_names(std::string_view section);

/// What to do about an unknown key: "did you mean n_layers?", "that key belongs to [optim]", or the section's keys.
std::string advice_for_unknown_key(std::string_view section, std::string_view name);

/// A value as it was written, before its type is checked against the key.
struct ConfigValue {
  std::variant<std::monostate, bool, int64_t, double, std::string> value;  ///< monostate: something else
  std::string description;  ///< for messages: `the string "6"`, `6.5`, `an array`
};

/// Stores a value, or says what is wrong with it (what, found, expected, hint) and changes nothing. An integer is
/// accepted for a number; nothing else is converted.
std::optional<Problem> assign(const ConfigKey& key, Config& config, const ConfigValue& value);

/// A field's value as TOML text: `0.001`, `true`, `"cosine"`; "" while it is not derived yet. Numbers are the shortest
/// text that reads back to the same value.
std::string toml_text(const ConfigKey& key, const Config& config);

/// A TOML basic string with quotes; control characters, quotes and backslashes escaped.
std::string toml_quoted(std::string_view text);

}  // namespace minillm
