// Values of config keys: checking and storing what was written, and writing what is stored.

#include "core/text.h"
#include "train/config_keys.h"

#include <algorithm>
#include <cmath>

namespace minillm {

namespace {

std::string number_text(double value) {
  std::string text = fmt::format("{}", value);
  // A number with neither point nor exponent would be read as an integer.
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string range_text(const ConfigKey& key, std::string_view kind) {
  const bool bounded_below = std::isfinite(key.low);
  const bool bounded_above = std::isfinite(key.high);
  if (bounded_below && bounded_above) {
    return fmt::format("{} in {}{}, {}{}", kind, key.low_open ? '(' : '[', key.low, key.high,
                       key.high_open ? ')' : ']');
  }
  if (bounded_below) {
    return fmt::format("{} {} {}", kind, key.low_open ? ">" : ">=", key.low);
  }
  return std::string(kind);
}

/// NaN is in no range.
bool in_range(const ConfigKey& key, double value) {
  const bool above_low = key.low_open ? value > key.low : value >= key.low;
  const bool below_high = key.high_open ? value < key.high : value <= key.high;
  return above_low && below_high;
}

Problem wrong_type(const ConfigValue& value, std::string expected) {
  return {.what = "wrong type", .found = value.description, .expected = std::move(expected)};
}

Problem out_of_range(const ConfigValue& value, std::string expected) {
  return {.what = "value out of range", .found = value.description, .expected = std::move(expected)};
}

std::optional<Problem> assign_bool(const ConfigValue& value, bool& to) {
  if (!std::holds_alternative<bool>(value.value)) {
    return wrong_type(value, "true or false");
  }
  to = std::get<bool>(value.value);
  return std::nullopt;
}

template <class Integer>
std::optional<Problem> assign_integer(const ConfigKey& key, const ConfigValue& value, Integer& to) {
  const std::string expected = range_text(key, "an integer");
  if (!std::holds_alternative<int64_t>(value.value)) {
    return wrong_type(value, expected);
  }
  const int64_t number = std::get<int64_t>(value.value);
  // 2^53 + 1 becomes 2^53 as a double; the bounds themselves are exact.
  const bool above = std::isfinite(key.high) && number > static_cast<int64_t>(key.high);
  if (above || !in_range(key, static_cast<double>(number))) {
    return out_of_range(value, expected);
  }
  to = static_cast<Integer>(number);
  return std::nullopt;
}

std::optional<Problem> assign_number(const ConfigKey& key, const ConfigValue& value, double& to) {
  const std::string expected = range_text(key, "a number");
  double number = 0;
  if (std::holds_alternative<double>(value.value)) {
    number = std::get<double>(value.value);
  } else if (std::holds_alternative<int64_t>(value.value)) {
    number = static_cast<double>(std::get<int64_t>(value.value));
  } else {
    return wrong_type(value, expected);
  }
  // Keys without a range are checked, NaN included, by their owner.
  const bool has_range = std::isfinite(key.low) || std::isfinite(key.high);
  if (has_range && !in_range(key, number)) {
    return out_of_range(value, expected);
  }
  to = number;
  return std::nullopt;
}

std::optional<Problem> assign_text(const ConfigKey& key, const ConfigValue& value, std::string& to) {
  if (!std::holds_alternative<std::string>(value.value)) {
    return wrong_type(value, key.words.empty() ? "a string" : "one of " + join(key.words));
  }
  const std::string& text = std::get<std::string>(value.value);
  const bool known = key.words.empty() || std::find(key.words.begin(), key.words.end(), text) != key.words.end();
  if (!known) {
    return Problem{.what = "unknown word",
                   .found = value.description,
                   .expected = key.words.size() == 1 ? key.words.front() : "one of " + join(key.words),
                   .hint = did_you_mean(text, key.words)};
  }
  to = text;
  return std::nullopt;
}

/// Whether 0, -1 or "" in this key means "not derived yet" rather than a value.
bool is_underived(const ConfigKey& key, int64_t value) {
  return static_cast<double>(value) < key.low;
}

}  // namespace

std::optional<Problem> assign(const ConfigKey& key, Config& config, const ConfigValue& value) {
  const ConfigField field = key.field(config);
  if (bool* const* to = std::get_if<bool*>(&field)) {
    return assign_bool(value, **to);
  }
  if (const OptionalBool* to = std::get_if<OptionalBool>(&field)) {
    bool yes = false;
    std::optional<Problem> problem = assign_bool(value, yes);
    if (!problem) {
      *to->value = yes ? 1 : 0;
    }
    return problem;
  }
  if (int* const* to = std::get_if<int*>(&field)) {
    return assign_integer(key, value, **to);
  }
  if (int64_t* const* to = std::get_if<int64_t*>(&field)) {
    return assign_integer(key, value, **to);
  }
  if (uint64_t* const* to = std::get_if<uint64_t*>(&field)) {
    return assign_integer(key, value, **to);
  }
  if (double* const* to = std::get_if<double*>(&field)) {
    return assign_number(key, value, **to);
  }
  return assign_text(key, value, *std::get<std::string*>(field));
}

std::string toml_text(const ConfigKey& key, const Config& config) {
  Config copy = config;  // the table hands out pointers to change; reading needs a config of its own
  const ConfigField field = key.field(copy);
  if (bool* const* value = std::get_if<bool*>(&field)) {
    return **value ? "true" : "false";
  }
  if (const OptionalBool* value = std::get_if<OptionalBool>(&field)) {
    return *value->value < 0 ? "" : (*value->value > 0 ? "true" : "false");
  }
  if (int* const* value = std::get_if<int*>(&field)) {
    return is_underived(key, **value) ? "" : fmt::format("{}", **value);
  }
  if (int64_t* const* value = std::get_if<int64_t*>(&field)) {
    return is_underived(key, **value) ? "" : fmt::format("{}", **value);
  }
  if (uint64_t* const* value = std::get_if<uint64_t*>(&field)) {
    return fmt::format("{}", **value);
  }
  if (double* const* value = std::get_if<double*>(&field)) {
    const bool underived = **value < key.low || (key.low_open && **value == key.low);
    return underived ? "" : number_text(**value);
  }
  const std::string& text = *std::get<std::string*>(field);
  return text.empty() ? "" : toml_quoted(text);
}

std::string toml_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      quoted += fmt::format("\\u{:04X}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace minillm
