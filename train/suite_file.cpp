#include "train/suite_file.h"

#include "core/text.h"
#include "train/toml_reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace minillm {

namespace {

const std::vector<std::string> suite_keys = {"base", "seeds", "steps", "set", "noise_floor", "run", "grid", "quick"};
const std::vector<std::string> run_keys = {"name", "base", "seeds", "set", "match", "reference"};
const std::vector<std::string> quick_keys = {"seeds", "steps", "set"};
constexpr size_t most_variants = 1000;

/// What stands in the file, before it is multiplied.
struct RunEntry {
  std::string name;
  std::string base;
  std::vector<std::string> set;
  std::optional<std::vector<uint64_t>> seeds;
  std::string match;
  std::string reference;
  std::string where;  // file:line
};

struct GridAxis {
  std::string key;                  // "optim.lr"
  std::vector<std::string> values;  // as they stand behind "optim.lr="
};

struct SuiteFile {
  std::string base;
  std::optional<std::vector<uint64_t>> seeds;
  std::optional<int64_t> steps;
  std::vector<std::string> set;
  std::string noise_floor;
  std::vector<RunEntry> runs;
  std::vector<GridAxis> grid;
};

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

class SuiteReader {
 public:
  explicit SuiteReader(const std::string& path) : path_(path), folder_(std::filesystem::path(path).parent_path()) {}

  /// Throws when anything was wrong.
  SuiteFile read(bool quick) {
    const auto text = read_toml_text(path_, "suite", path_);
    if (const Problem* problem = std::get_if<Problem>(&text)) {
      fail_input(*problem);
    }
    toml::table table;
    try {
      table = toml::parse(std::get<std::string>(text), path_);
    } catch (const toml::parse_error& error) {
      fail_input(problem_of(error, path_));
    }
    for (const TomlEntry& entry : entries_by_line(table)) {
      if (known(entry, suite_keys, "suite")) {
        read_top_level(entry);
      }
    }
    read_quick(table["quick"].as_table(), quick);
    if (file_.runs.empty()) {
      problems_.push_back({.where = path_, .what = "a suite has no runs", .expected = "[[run]] with a name"});
    }
    fail_if_any(problems_);
    return file_;
  }

 private:
  std::string place(const TomlEntry& entry) const { return fmt::format("{}:{}", path_, entry.line); }

  void wrong(const TomlEntry& entry, const std::string& expected) {
    problems_.push_back({.where = fmt::format("{}: {}", place(entry), entry.name),
                         .what = "wrong type",
                         .found = value_of(*entry.node).description,
                         .expected = expected});
  }

  bool known(const TomlEntry& entry, const std::vector<std::string>& keys, const std::string& of) {
    if (std::find(keys.begin(), keys.end(), entry.name) != keys.end()) {
      return true;
    }
    const std::string near = did_you_mean(entry.name, keys);
    problems_.push_back({.where = place(entry),
                         .what = fmt::format("unknown key {} of a {}", entry.name, of),
                         .hint = near.empty() ? "the keys are " + join(keys) : near});
    return false;
  }

  std::string text_of(const TomlEntry& entry) {
    if (const auto* text = entry.node->as_string(); text != nullptr && !text->get().empty()) {
      return text->get();
    }
    wrong(entry, "a text");
    return "";
  }

  std::string path_of(const TomlEntry& entry) {
    const std::string text = text_of(entry);
    return text.empty() ? "" : (folder_ / text).lexically_normal().string();
  }

  std::vector<std::string> words_of(const TomlEntry& entry) {
    std::vector<std::string> words;
    if (const auto* array = entry.node->as_array()) {
      for (const toml::node& node : *array) {
        if (const auto* word = node.as_string()) {
          words.push_back(word->get());
        }
      }
      if (words.size() == array->size()) {
        return words;
      }
    }
    wrong(entry, "an array of settings: [\"model.norm=layernorm\"]");
    return {};
  }

  std::vector<uint64_t> seeds_of(const TomlEntry& entry) {
    std::vector<uint64_t> seeds;
    if (const auto* array = entry.node->as_array()) {
      for (const toml::node& node : *array) {
        if (const auto* seed = node.as_integer(); seed != nullptr && seed->get() >= 0) {
          seeds.push_back(static_cast<uint64_t>(seed->get()));
        }
      }
      const bool all_read = seeds.size() == array->size();
      if (all_read && !seeds.empty() && std::set<uint64_t>(seeds.begin(), seeds.end()).size() == seeds.size()) {
        return seeds;
      }
    }
    wrong(entry, "an array of different whole numbers: [1, 2, 3]");
    return {};
  }

  std::optional<int64_t> steps_of(const TomlEntry& entry) {
    if (const auto* steps = entry.node->as_integer(); steps != nullptr && steps->get() >= 1) {
      return steps->get();
    }
    wrong(entry, "a whole number, at least 1");
    return std::nullopt;
  }

  void read_top_level(const TomlEntry& entry) {
    const std::string& key = entry.name;
    if (key == "base") {
      file_.base = path_of(entry);
    } else if (key == "noise_floor") {
      file_.noise_floor = path_of(entry);
    } else if (key == "seeds") {
      file_.seeds = seeds_of(entry);
    } else if (key == "steps") {
      file_.steps = steps_of(entry);
    } else if (key == "set") {
      file_.set = words_of(entry);
    } else if (key == "run") {
      read_runs(entry);
    } else if (key == "grid") {
      read_grid(entry);
    } else if (!entry.node->is_table()) {
      wrong(entry, "a table, [quick]");
    }
  }

  void read_runs(const TomlEntry& entry) {
    const auto* array = entry.node->as_array();
    if (array == nullptr || !array->is_array_of_tables()) {
      wrong(entry, "tables, [[run]]");
      return;
    }
    for (const toml::node& node : *array) {
      read_run(*node.as_table());
    }
  }

  void read_run(const toml::table& table) {
    RunEntry run;
    run.where = fmt::format("{}:{}", path_, table.source().begin.line);
    for (const TomlEntry& entry : entries_by_line(table)) {
      if (!known(entry, run_keys, "run")) {
        continue;
      }
      if (entry.name == "name") {
        run.name = text_of(entry);
      } else if (entry.name == "base") {
        run.base = path_of(entry);
      } else if (entry.name == "seeds") {
        run.seeds = seeds_of(entry);
      } else if (entry.name == "set") {
        run.set = words_of(entry);
      } else {
        (entry.name == "match" ? run.match : run.reference) = text_of(entry);
      }
    }
    const bool is_name = !run.name.empty() && run.name.find_first_not_of(name_characters) == std::string::npos;
    if (!is_name || run.name.front() == '-') {
      problems_.push_back({.where = run.where,
                           .what = "a run's name becomes a folder's",
                           .found = printable(run.name),
                           .expected = "letters, digits, _ and -"});
    }
    file_.runs.push_back(run);
  }

  void read_grid(const TomlEntry& entry) {
    const toml::table* table = entry.node->as_table();
    if (table == nullptr) {
      wrong(entry, "a table, [grid]");
      return;
    }
    for (const TomlEntry& axis : entries_by_line(*table)) {
      read_axis(axis);
    }
  }

  void read_axis(const TomlEntry& entry) {
    const toml::array* array = entry.node->as_array();
    if (array == nullptr || array->empty()) {
      wrong(entry, "an array of values: \"optim.lr\" = [1e-3, 3e-3]");
      return;
    }
    GridAxis axis{.key = entry.name, .values = {}};
    for (const toml::node& node : *array) {
      const auto* text = node.as_string();
      axis.values.push_back(text == nullptr ? value_of(node).description : text->get());
      if (axis.values.back().find_first_not_of(value_characters) != std::string::npos) {
        wrong(entry, "values of letters, digits and _-+. that can stand in a folder's name");
      }
    }
    file_.grid.push_back(axis);
  }

  /// Looks at [quick] in any case; with `quick` it counts: every run a quarter as long, or what it says.
  void read_quick(const toml::table* table, bool quick) {
    SuiteFile shorter = file_;
    shorter.steps = file_.steps ? std::optional(std::max<int64_t>(1, *file_.steps / 4)) : std::nullopt;
    for (const TomlEntry& entry : table == nullptr ? std::vector<TomlEntry>{} : entries_by_line(*table)) {
      if (!known(entry, quick_keys, "[quick]")) {
        continue;
      }
      if (entry.name == "steps") {
        shorter.steps = steps_of(entry);
      } else if (entry.name == "seeds") {
        shorter.seeds = seeds_of(entry);
      } else {
        append(shorter.set, words_of(entry));
      }
    }
    if (quick && !shorter.steps) {
      problems_.push_back({.where = path_, .what = "--quick needs steps to shorten", .expected = "steps = 100"});
    }
    if (quick) {
      file_ = shorter;
    }
  }

  static constexpr const char* value_characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.";
  static constexpr const char* name_characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

  std::string path_;
  std::filesystem::path folder_;
  SuiteFile file_;
  std::vector<Problem> problems_;
};

/// One value of every axis of the grid.
struct GridPoint {
  std::string suffix;                  // "-lr=0.003-warmup_steps=0"
  std::vector<std::string> overrides;  // "optim.lr=0.003"
};

std::vector<GridPoint> grid_points(const std::vector<GridAxis>& grid) {
  std::vector<GridPoint> points(1);
  for (const GridAxis& axis : grid) {
    std::vector<GridPoint> longer;
    for (const GridPoint& point : points) {
      for (const std::string& value : axis.values) {
        GridPoint next = point;
        next.suffix += fmt::format("-{}={}", axis.key.substr(axis.key.rfind('.') + 1), value);
        next.overrides.push_back(axis.key + "=" + value);
        longer.push_back(next);
      }
    }
    points = std::move(longer);
    if (points.size() > most_variants) {
      fail_input({.where = "[grid]", .what = "too many points", .expected = fmt::format("at most {}", most_variants)});
    }
  }
  return points;
}

Variant variant_of(const SuiteFile& file, const RunEntry& run, const GridPoint& point,
                   const std::vector<std::string>& overrides) {
  const std::string& reference = run.reference.empty() ? file.runs.front().name : run.reference;
  Variant variant{.name = run.name + point.suffix,
                  .run = run.name,
                  .base = run.base.empty() ? file.base : run.base,
                  .overrides = {},
                  .seeds = run.seeds.value_or(file.seeds.value_or(std::vector<uint64_t>{1337})),
                  .match = run.match.empty() ? "" : run.match + point.suffix,
                  .reference = reference + point.suffix};
  if (file.steps) {
    variant.overrides.push_back(fmt::format("train.steps={}", *file.steps));
  }
  append(variant.overrides, file.set);
  append(variant.overrides, run.set);
  append(variant.overrides, point.overrides);
  append(variant.overrides, overrides);
  return variant;
}

bool matches_a_matching(const SuiteFile& file, const RunEntry& run) {
  return !run.match.empty() && std::any_of(file.runs.begin(), file.runs.end(), [&](const RunEntry& other) {
    return other.name == run.match && !other.match.empty();
  });
}

/// Names that are used twice, or that no run has.
std::vector<Problem> problems_of(const SuiteFile& file, const std::string& path) {
  std::vector<Problem> problems;
  std::vector<std::string> names;
  for (const RunEntry& run : file.runs) {
    if (std::find(names.begin(), names.end(), run.name) != names.end()) {
      problems.push_back({.where = run.where, .what = "two runs have one name", .found = run.name});
    }
    names.push_back(run.name);
  }
  for (const RunEntry& run : file.runs) {
    for (const std::string& named : {run.match, run.reference}) {
      if (!named.empty() && std::find(names.begin(), names.end(), named) == names.end()) {
        const std::string near = did_you_mean(named, names);
        problems.push_back({.where = run.where,
                            .what = "no run has this name",
                            .found = named,
                            .hint = near.empty() ? "the runs are " + join(names) : near});
      }
    }
    if (matches_a_matching(file, run)) {
      problems.push_back(
          {.where = run.where, .what = "a run can match only one that matches no other", .found = run.match});
    }
    if (run.base.empty() && file.base.empty()) {
      problems.push_back({.where = run.where, .what = "a run has no config", .expected = "base = \"config.toml\""});
    }
  }
  if (file.base.empty() && file.runs.empty()) {
    problems.push_back({.where = path, .what = "a suite has no config", .expected = "base = \"config.toml\""});
  }
  return problems;
}

}  // namespace

Suite load_suite(const std::string& path, const std::vector<std::string>& overrides, bool quick) {
  const SuiteFile file = SuiteReader(path).read(quick);
  fail_if_any(problems_of(file, path));
  const std::filesystem::path at = std::filesystem::absolute(path);
  const bool is_named_by_folder = at.filename() == "suite.toml";
  Suite suite{.name = is_named_by_folder ? at.parent_path().filename().string() : at.stem().string(),
              .noise_floor = quick ? "" : file.noise_floor,  // of other steps
              .variants = {}};
  for (const GridPoint& point : grid_points(file.grid)) {
    for (const RunEntry& run : file.runs) {
      suite.variants.push_back(variant_of(file, run, point, overrides));
    }
  }
  std::set<std::string> names;
  for (const Variant& variant : suite.variants) {
    if (!names.insert(variant.name).second) {
      fail_input({.where = path, .what = "two variants have one name", .found = variant.name});
    }
  }
  return suite;
}

}  // namespace minillm
