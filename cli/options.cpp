#include "cli/options.h"

#include "core/error.h"
#include "core/text.h"

// Without the regular expressions: std::regex recurses once a character, so a long --prompt=TEXT would overflow the
// stack, and '.' does not match a line end. Versions 3.1 and 3.2 read the same command lines.
#define CXXOPTS_NO_REGEX
#include <cxxopts.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

namespace minillm::cli {

namespace {

std::string where_of(const CommandSpec& spec) {
  return "minillm " + spec.name;
}

const OptionSpec* find_option(const CommandSpec& spec, const std::string& name) {
  for (const OptionSpec& option : spec.options) {
    if (option.name == name) {
      return &option;
    }
  }
  return nullptr;
}

bool is_help(const std::string& word) {
  return word == "--help" || word == "-h";
}

bool starts_with(const std::string& text, const char* start) {
  return text.rfind(start, 0) == 0;
}

/// "--top-p=0.9" -> "top-p"
std::string option_name(const std::string& word) {
  return word.substr(2, word.find('=') - 2);
}

[[noreturn]] void fail_unknown(const CommandSpec& spec, const std::string& word) {
  const std::string typed = word.substr(0, word.find('='));
  std::vector<std::string> known = {"--help"};
  for (const OptionSpec& option : spec.options) {
    known.push_back("--" + option.name);
  }
  std::string hint = did_you_mean(starts_with(typed, "--") ? typed : "-" + typed, known);
  const bool like_setting = spec.overrides && typed.find('.') != std::string::npos;
  if (like_setting) {
    hint = "settings have no dashes: " + printable(word.substr(word.find_first_not_of('-')));
  }
  fail_input({.where = where_of(spec),
              .what = "unknown option " + printable(typed),
              .hint = hint.empty() ? "see " + where_of(spec) + " --help" : hint});
}

void check_not_empty(const CommandSpec& spec, const OptionSpec& option, const std::string& value) {
  if (value.empty() && !option.may_be_empty) {
    fail_input({.where = where_of(spec),
                .what = "--" + option.name + " needs a value",
                .found = printable(value),
                .expected = "--" + option.name + " " + option.argument});
  }
}

/// Finds what cxxopts would let pass: the nearest name for an unknown option, an option in place of a value, one given
/// twice.
void check_options(const CommandSpec& spec, const std::vector<std::string>& typed) {
  std::set<std::string> seen;
  for (size_t i = 0; i < typed.size() && typed[i] != "--"; ++i) {
    const std::string& word = typed[i];
    if (word.size() < 2 || word[0] != '-') {
      continue;
    }
    const OptionSpec* option = starts_with(word, "--") ? find_option(spec, option_name(word)) : nullptr;
    if (option == nullptr) {
      fail_unknown(spec, word);
    }
    const std::string name = "--" + option->name;
    if (!seen.insert(option->name).second) {
      fail_input({.where = where_of(spec), .what = name + " is given twice", .hint = "leave one out"});
    }
    const bool has_value = word.find('=') != std::string::npos;
    if (option->argument.empty() && has_value) {
      fail_input({.where = where_of(spec), .what = name + " is a switch and takes no value", .found = printable(word)});
    }
    if (option->argument.empty()) {
      continue;
    }
    if (has_value) {
      check_not_empty(spec, *option, word.substr(word.find('=') + 1));
      continue;
    }
    ++i;
    const bool next_is_option =
        i < typed.size() && starts_with(typed[i], "--") && find_option(spec, option_name(typed[i])) != nullptr;
    if (i >= typed.size() || next_is_option) {
      fail_input({.where = where_of(spec),
                  .what = name + " needs a value",
                  .found = next_is_option ? typed[i] : "",
                  .expected = name + " " + option->argument});
    }
    check_not_empty(spec, *option, typed[i]);
  }
}

cxxopts::Options make_parser(const CommandSpec& spec) {
  cxxopts::Options parser(where_of(spec), spec.summary);
  const std::string settings = spec.overrides ? " [section.key=value]..." : "";
  parser.custom_help(spec.words + settings + " [OPTIONS]");
  parser.set_width(100);
  auto add = parser.add_options();
  for (const OptionSpec& option : spec.options) {
    if (option.argument.empty()) {
      add(option.name, option.help);
    } else if (option.fallback.empty()) {
      add(option.name, option.help, cxxopts::value<std::string>(), option.argument);
    } else {
      add(option.name, option.help, cxxopts::value<std::string>()->default_value(option.fallback), option.argument);
    }
  }
  add("h,help", "print this help");
  return parser;
}

/// "optim.lr=3e-4": letters, digits and _ with at least one dot before the '='.
bool is_override(const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos || word.find('.') > equals) {
    return false;
  }
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
  });
}

void check_words(const CommandSpec& spec, const std::vector<std::string>& words) {
  if (words.size() > spec.max_words) {
    const std::string& word = words[spec.max_words];
    fail_input({.where = where_of(spec),
                .what = "unexpected word " + printable(word),
                .expected = spec.overrides ? "section.key=value" : "",
                .hint = "see " + where_of(spec) + " --help"});
  }
  const auto nothing = std::find(words.begin(), words.end(), "");
  if (words.size() < spec.min_words || nothing != words.end()) {
    fail_input({.where = where_of(spec),
                .what = spec.words + " is missing",
                .found = nothing != words.end() ? printable(*nothing) : "",
                .hint = spec.examples.empty() ? "" : "for example: " + spec.examples.front()});
  }
}

void check_required(const CommandSpec& spec, const Arguments& arguments) {
  for (const std::string& name : spec.required) {
    if (!arguments.given(name)) {
      fail_input({.where = where_of(spec),
                  .what = "--" + name + " is missing",
                  .hint = spec.examples.empty() ? "" : "for example: " + spec.examples.front()});
    }
  }
}

}  // namespace

bool asks_for_help(const CommandSpec& spec, const std::vector<std::string>& typed) {
  for (size_t i = 0; i < typed.size() && typed[i] != "--"; ++i) {
    if (is_help(typed[i])) {
      return true;
    }
    const bool long_option = starts_with(typed[i], "--") && typed[i].find('=') == std::string::npos;
    const OptionSpec* option = long_option ? find_option(spec, option_name(typed[i])) : nullptr;
    if (option != nullptr && !option->argument.empty()) {
      ++i;
    }
  }
  return false;
}

Arguments parse_arguments(const CommandSpec& spec, const std::vector<std::string>& typed) {
  check_options(spec, typed);
  const std::string program = where_of(spec);
  std::vector<const char*> argv = {program.c_str()};
  for (const std::string& word : typed) {
    argv.push_back(word.c_str());
  }
  Arguments arguments;
  std::vector<std::string> words;
  try {
    cxxopts::Options parser = make_parser(spec);
    const cxxopts::ParseResult parsed = parser.parse(static_cast<int>(argv.size()), argv.data());
    for (const OptionSpec& option : spec.options) {
      const bool given = parsed.count(option.name) > 0;
      arguments.given_[option.name] = given;
      const bool typed_value = given && !option.argument.empty();
      arguments.values_[option.name] = typed_value ? parsed[option.name].as<std::string>() : option.fallback;
    }
    // Not cxxopts' own positional words: it splits what it collects into a list at commas.
    words = parsed.unmatched();
  } catch (const cxxopts::exceptions::exception& error) {
    fail_input({.where = where_of(spec), .what = printable(error.what()), .hint = "see " + program + " --help"});
  }
  for (const std::string& word : words) {
    // A word too many with a '=' is meant as a setting: the config's loader knows which.
    const bool too_many = arguments.words_.size() == spec.max_words && word.find('=') != std::string::npos;
    const bool setting = spec.overrides && (is_override(word) || too_many);
    (setting ? arguments.overrides_ : arguments.words_).push_back(word);
  }
  check_words(spec, arguments.words_);
  check_required(spec, arguments);
  return arguments;
}

std::string help_text(const CommandSpec& spec) {
  std::string text = make_parser(spec).help();
  text += spec.note.empty() ? "" : "\n" + spec.note + "\n";
  text += spec.examples.size() == 1 ? "\nExample:\n" : spec.examples.empty() ? "" : "\nExamples:\n";
  for (const std::string& example : spec.examples) {
    text += "  " + example + "\n";
  }
  return text;
}

bool Arguments::given(const std::string& option) const {
  const auto found = given_.find(option);
  check(found != given_.end(), "the command has no option --{}", option);
  return found->second;
}

const std::string& Arguments::text(const std::string& option) const {
  const auto found = values_.find(option);
  check(found != values_.end(), "the command has no option --{}", option);
  return found->second;
}

int64_t Arguments::integer(const std::string& option, int64_t low, int64_t high) const {
  const std::string& typed = text(option);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(typed.data(), typed.data() + typed.size(), value);
  if (error != std::errc() || end != typed.data() + typed.size() || value < low || value > high) {
    fail_input({.where = "--" + option,
                .what = "the value is not a whole number in range",
                .found = printable(typed),
                .expected = fmt::format("from {} to {}", low, high == INT64_MAX ? "2^63 - 1" : std::to_string(high))});
  }
  return value;
}

double Arguments::number(const std::string& option) const {
  const std::string& typed = text(option);
  double value = 0;
  const auto [end, error] = std::from_chars(typed.data(), typed.data() + typed.size(), value);
  if (error != std::errc() || end != typed.data() + typed.size()) {
    fail_input({.where = "--" + option, .what = "the value is not a number", .found = printable(typed)});
  }
  return value;
}

}  // namespace minillm::cli
