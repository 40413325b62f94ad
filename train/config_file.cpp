#include "train/config_file.h"

#include "core/text.h"
#include "train/config_checks.h"
#include "train/toml_reader.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace minillm {

namespace {

constexpr size_t most_bases = 32;
constexpr size_t most_problems = 20;  // told at once
constexpr size_t long_hint = 80;      // characters

/// Gathers values and problems from the base files, the file and the overrides. Nothing is thrown before the end, so
/// that all problems are told together, and nothing is returned when there is one.
class ConfigReader {
 public:
  ConfigReader() = default;
  explicit ConfigReader(const Config& below) { loaded_.config = below; }

  void load_file(const std::filesystem::path& path, const std::string& named_by) {
    std::error_code no_file;  // a pipe has no canonical path
    const std::filesystem::path canonical = std::filesystem::weakly_canonical(path, no_file);
    if (open_files_.size() >= most_bases) {
      add({.where = named_by, .what = "too many base files", .expected = fmt::format("at most {}", most_bases)});
      return;
    }
    if (!no_file && std::find(open_files_.begin(), open_files_.end(), canonical) != open_files_.end()) {
      add({.where = named_by, .what = "base files form a cycle", .found = path.string()});
      return;
    }
    std::optional<std::string> text = read(path, named_by);
    if (!text) {
      refused_.insert("run.name");  // which a path that is no config's says nothing about
      return;
    }
    open_files_.push_back(canonical);
    loaded_.files.push_back(path.string());
    load_text(*text, path.string(), path.parent_path());
    open_files_.pop_back();
  }

  void load_text(std::string_view text, const std::string& source, const std::filesystem::path& folder) {
    toml::table table;
    try {
      table = toml::parse(text, std::string_view(source));
    } catch (const toml::parse_error& error) {
      add(problem_of(error, source));
      return;
    }
    if (const toml::node* base = table.get("base")) {
      load_base(*base, source, folder);
    }
    for (const TomlEntry& entry : entries_by_line(table)) {
      if (entry.name != "base") {
        apply_top_level(entry, source);
      }
    }
  }

  void apply_override(const std::string& word) {
    const std::string where = fmt::format("override {}", printable(word));
    const size_t equals = word.find('=');
    const std::string path = word.substr(0, equals);
    const size_t dot = path.find('.');
    const bool has_both = dot != std::string::npos && dot > 0 && dot + 1 < path.size();
    if (equals == std::string::npos || !has_both) {
      std::string hint = "optim.lr=3e-4, for example";
      if (const ConfigKey* key = find_key_elsewhere("", path)) {
        hint = fmt::format("did you mean {}?", key->path());
      }
      add({.where = where, .what = "not an override", .expected = "section.key=value", .hint = hint});
      return;
    }
    const std::string section = path.substr(0, dot);
    const std::string name = path.substr(dot + 1);
    if (const ConfigKey* key = known_key(section, name, where)) {
      if (std::optional<ConfigValue> value = override_value(*key, word.substr(equals + 1), where)) {
        store(*key, *value, where, "command line");
      }
    }
  }

  /// Derives what is absent and compares keys with each other; throws when anything was wrong.
  LoadedConfig finish(const std::string& stem) {
    for (const Problem& problem : derive_and_compare(loaded_.config, stem)) {
      add_about(problem);
    }
    return checked();
  }

  /// Throws when anything was wrong.
  const LoadedConfig& checked() const {
    if (problems_.empty()) {
      return loaded_;
    }
    std::vector<std::string> lines = problems_;
    if (lines.size() > most_problems) {
      lines.resize(most_problems);
      lines.push_back(fmt::format("and {} more problems", problems_.size() - most_problems));
    }
    fail_input({.what = join(lines, "\n")});
  }

 private:
  void add(Problem problem) {
    if (problem.hint.size() > long_hint && !long_hints_.insert(problem.hint).second) {
      problem.hint = "";  // a section's keys are listed once
    }
    std::string line = describe(problem);
    if (std::find(problems_.begin(), problems_.end(), line) == problems_.end()) {
      problems_.push_back(std::move(line));
    }
  }

  /// A problem about a key's stored value: silent when that key, or one it is compared with, was not stored.
  void add_about(const Problem& problem) {
    bool about_stored = refused_.count(problem.where) == 0;
    for (const std::string_view other : compared_with(problem.where)) {
      about_stored = about_stored && refused_.count(std::string(other)) == 0;
    }
    if (about_stored) {
      add(located(problem, loaded_.config, loaded_.origins));
    }
  }

  std::optional<std::string> read(const std::filesystem::path& path, const std::string& named_by) {
    const std::string file_name = path.empty() ? "\"\"" : path.string();
    const bool is_base = !named_by.empty();
    const auto text = read_toml_text(path, is_base ? "base config" : "config", is_base ? named_by : file_name);
    if (const Problem* problem = std::get_if<Problem>(&text)) {
      add(*problem);
      return std::nullopt;
    }
    return std::get<std::string>(text);
  }

  void load_base(const toml::node& base, const std::string& source, const std::filesystem::path& folder) {
    const std::string where = fmt::format("{}:{}", source, base.source().begin.line);
    if (const auto* name = base.as_string()) {
      load_file(folder / name->get(), where);
    } else {
      add({.where = where,
           .what = "base: wrong type",
           .found = value_of(base).description,
           .expected = "the path of another config, relative to this file"});
    }
  }

  void apply_top_level(const TomlEntry& entry, const std::string& source) {
    const std::string& name = entry.name;
    const toml::node& node = *entry.node;
    const std::string where = fmt::format("{}:{}", source, entry.line);
    const std::vector<std::string> sections = section_names();
    const bool is_section = std::find(sections.begin(), sections.end(), name) != sections.end();
    const toml::table* table = node.as_table();
    if (is_section && table != nullptr) {
      for (const TomlEntry& value : entries_by_line(*table)) {
        apply(name, value, source);
      }
    } else if (is_section) {
      add({.where = where,
           .what = fmt::format("{}: wrong type", name),
           .found = value_of(node).description,
           .expected = fmt::format("a table, [{}]", name)});
    } else if (table != nullptr) {
      const std::string likely = nearest(name, sections);
      add({.where = where,
           .what = fmt::format("unknown section [{}]", printable(name)),
           .hint = likely.empty() ? fmt::format("the sections are {}", join(sections))
                                  : fmt::format("did you mean [{}]?", likely)});
    } else {
      add({.where = where,
           .what = fmt::format("unknown key {}", printable(name)),
           .hint = advice_without_section(name)});
    }
  }

  static std::string advice_without_section(const std::string& name) {
    if (name != "base" && nearest(name, {"base"}) == "base") {
      return "did you mean base?";
    }
    return advice_for_unknown_key("", name);
  }

  void apply(const std::string& section, const TomlEntry& entry, const std::string& source) {
    const std::string where = fmt::format("{}:{}", source, entry.line);
    if (const ConfigKey* key = known_key(section, entry.name, where)) {
      store(*key, value_of(*entry.node), where, where);
    }
  }

  const ConfigKey* known_key(const std::string& section, const std::string& name, const std::string& where) {
    const ConfigKey* key = find_key(section, name);
    if (key == nullptr) {
      const std::vector<std::string> sections = section_names();
      const bool is_section = std::find(sections.begin(), sections.end(), section) != sections.end();
      const std::string likely = is_section ? "" : nearest(section, sections);
      const bool misspelt_section = find_key(likely, name) != nullptr;
      add({.where = where,
           .what = fmt::format("unknown key {}.{}", printable(section), printable(name)),
           .hint = misspelt_section ? fmt::format("did you mean {}.{}?", likely, name)
                                    : advice_for_unknown_key(section, name)});
    }
    return key;
  }

  void store(const ConfigKey& key, const ConfigValue& value, const std::string& where, const std::string& origin) {
    if (std::optional<Problem> problem = assign(key, loaded_.config, value)) {
      problem->where = fmt::format("{}: {}", where, key.path());
      refused_.insert(key.path());
      add(*problem);
    } else {
      loaded_.origins[key.path()] = origin;
    }
  }

  /// The value of an override is TOML, or a bare word for a key that holds text: shells eat quotes.
  std::optional<ConfigValue> override_value(const ConfigKey& key, const std::string& text, const std::string& where) {
    const bool holds_text = std::holds_alternative<std::string*>(key.field(loaded_.config));
    const bool quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'');
    const std::string document = "value = " + (holds_text && !quoted ? toml_quoted(text) : text);
    try {
      const toml::table table = toml::parse(std::string_view(document));
      if (table.size() == 1) {
        return value_of(*table.get("value"));
      }
    } catch (const toml::parse_error&) {
      if (!holds_text) {
        const bool digits = text.find_first_not_of("+-0123456789_") == std::string::npos;
        const bool like_number = text.find_first_not_of("+-.0123456789eE_") == std::string::npos;
        const std::string unreadable = digits        ? text + ", which is not between -2^63 and 2^63 - 1"
                                       : like_number ? text + ", which TOML does not read as a number"
                                                     : "the word " + toml_quoted(text);
        return ConfigValue{{}, text.empty() ? "nothing" : unreadable};
      }
    }
    add({.where = where,
         .what = "the value is neither a TOML value nor valid UTF-8 text",
         .found = toml_quoted(text),
         .expected = "a word, or TOML text in quotes"});
    return std::nullopt;
  }

  LoadedConfig loaded_;
  std::vector<std::string> problems_;
  std::set<std::string> long_hints_;
  std::set<std::string> refused_;
  std::vector<std::filesystem::path> open_files_;
};

}  // namespace

LoadedConfig load_config(const std::string& path, const std::vector<std::string>& overrides) {
  ConfigReader reader;
  reader.load_file(path, "");
  for (const std::string& word : overrides) {
    reader.apply_override(word);
  }
  return reader.finish(std::filesystem::path(path).stem().string());
}

LoadedConfig parse_config(std::string_view text, const std::string& source, const std::vector<std::string>& overrides) {
  ConfigReader reader;
  reader.load_text(text, source, std::filesystem::path(source).parent_path());
  for (const std::string& word : overrides) {
    reader.apply_override(word);
  }
  return reader.finish(std::filesystem::path(source).stem().string());
}

Config with_overrides(const Config& config, const std::vector<std::string>& overrides) {
  ConfigReader reader(config);
  for (const std::string& word : overrides) {
    reader.apply_override(word);
  }
  return reader.checked().config;
}

}  // namespace minillm
