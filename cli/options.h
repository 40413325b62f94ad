#pragma once
// The words of a command line, checked against what a command takes.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace minillm::cli {

/// One option: {"top-p", "P", "0.9", "the fewest tokens that exceed P"}. Without an argument it is a switch.
struct OptionSpec {
  std::string name;      ///< without the dashes
  std::string argument;  ///< "N", "FILE"; "" for a switch
  std::string fallback;  ///< the value when it is not given, shown in the help; "" = none
  std::string help;
  bool may_be_empty = false;  ///< --prompt "" means something; --out "" is a variable of the shell that was not set
};

struct CommandSpec {
  std::string name;       ///< "generate"
  std::string words;      ///< "RUN|MODEL": what stands behind the name, for the usage line and errors
  std::string summary;    ///< a line for the overview
  std::string note = {};  ///< a sentence more for the command's help; "" = none
  size_t min_words = 0;
  size_t max_words = 0;
  bool overrides = false;  ///< plain words section.key=value are settings, not words
  std::vector<OptionSpec> options = {};
  std::vector<std::string> required = {};  ///< names of options that must be given
  std::vector<std::string> examples = {};  ///< complete command lines
};

/// What was typed, or the options' fallbacks. Asking for an option that the spec does not have is an error of the
/// program and throws.
class Arguments {
 public:
  const std::vector<std::string>& words() const { return words_; }
  const std::vector<std::string>& overrides() const { return overrides_; }  ///< "optim.lr=3e-4"

  bool given(const std::string& option) const;  ///< a switch that is set, or an option with a value
  const std::string& text(const std::string& option) const;

  /// Numbers are read whole and strictly; an input Error names the option, what was found and the range.
  int64_t integer(const std::string& option, int64_t low, int64_t high = INT64_MAX) const;
  double number(const std::string& option) const;  ///< NaN and infinity pass: whoever uses it knows the range

 private:
  friend Arguments parse_arguments(const CommandSpec& spec, const std::vector<std::string>& typed);

  std::map<std::string, std::string> values_;
  std::map<std::string, bool> given_;
  std::vector<std::string> words_;
  std::vector<std::string> overrides_;
};

/// Reads what was typed behind the command's name. Throws an input Error that names the option or word, with the
/// nearest known option for a misspelt one. `--` ends the options.
Arguments parse_arguments(const CommandSpec& spec, const std::vector<std::string>& typed);

/// Whether --help or -h was typed (and is not the value of an option): then nothing else need be right.
bool asks_for_help(const CommandSpec& spec, const std::vector<std::string>& typed);

/// Usage, options with their fallbacks, the note, examples.
std::string help_text(const CommandSpec& spec);

}  // namespace minillm::cli
