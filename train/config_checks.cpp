#include "train/config_checks.h"

#include "core/text.h"
#include "core/utf8.h"
#include "train/lint.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace minillm {

namespace {

constexpr int64_t vocabulary_to_come = 2;  // any valid one, so that the rest can be checked

using Problems = std::vector<Problem>;

/// A number as float kernels see it: rounded, and flushed to 0 where a float would have fewer digits.
double as_float(double value) {
  const float rounded = static_cast<float>(value);
  return std::fabs(rounded) < std::numeric_limits<float>::min() ? 0 : static_cast<double>(rounded);
}

/// The config with the numbers of [model] and [optim] as train.dtype holds them.
Config as_held(const Config& config) {
  Config held = config;
  for (const ConfigKey& key : config_keys()) {
    const ConfigField field = key.field(held);
    double* const* number = std::get_if<double*>(&field);
    if (number != nullptr && config.train.dtype == "float32" && (key.section == "model" || key.section == "optim")) {
      **number = as_float(**number);
    }
  }
  return held;
}

Problems problems_of_values(const Config& config) {
  ModelConfig model = config.model;
  model.vocab_size = model.vocab_size == 0 ? vocabulary_to_come : model.vocab_size;
  Problems problems = derive_and_check(model, 0, config.data.seq_len);
  if (!config.model.causal && config.data.objective == "next") {
    problems.push_back({.where = "model.causal",
                        .what = "a model that sees the next token cannot learn to predict it",
                        .found = "false",
                        .expected = "true with data.objective = \"next\"",
                        .hint = "data.objective = \"masked\" trains it"});
  }
  const Problems of_optim = problems_of(config.optim, config.train.steps);
  problems.insert(problems.end(), of_optim.begin(), of_optim.end());
  return problems;
}

/// Numbers that are right as they are written and wrong as the run would use them.
void add_problems_of_held(const Config& config, Problems& problems) {
  const auto is_known = [&](const Problem& problem) {
    return std::any_of(problems.begin(), problems.end(),
                       [&](const Problem& known) { return known.where == problem.where; });
  };
  for (Problem problem : problems_of_values(as_held(config))) {
    if (is_known(problem)) {
      continue;
    }
    const size_t dot = problem.where.find('.');
    const ConfigKey* key = find_key(problem.where.substr(0, dot), problem.where.substr(dot + 1));
    if (key != nullptr) {
      problem.found =
          fmt::format("{}, which {} holds as {}", toml_text(*key, config), config.train.dtype, problem.found);
    }
    problems.push_back(std::move(problem));
  }
}

void derive_run(Config& config, const std::string& stem, Problems& problems) {
  config.run.name = config.run.name.empty() ? stem : config.run.name;
  const std::string& name = config.run.name;
  const bool plain = name != "." && name != ".." && name.find('/') == std::string::npos && valid_utf8(name) == name &&
                     std::none_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (!plain) {
    problems.push_back({.where = "run.name",
                        .what = "is not a plain name",
                        .found = valid_utf8(printable(name)),
                        .expected = "a name in UTF-8 without / and control characters",
                        .hint = "it comes from run.name or from the config file's name; run.out takes a path"});
  }
  for (const auto& [key, text] : {std::pair("run.out", &config.run.out), std::pair("data.path", &config.data.path)}) {
    if (text->find('\0') != std::string::npos) {
      problems.push_back({.where = key, .what = "holds a NUL, which no path can", .found = printable(*text)});
    }
  }
  if (const std::string fault = fault_of_silence(config.run.silence); !fault.empty()) {
    problems.push_back({.where = "run.silence",
                        .what = "names a lint that cannot be silenced",
                        .found = fault,
                        .expected = "ids of warnings and infos, \"E12, E20\"",
                        .hint = "minillm lint --list shows them"});
  }
  config.run.out = config.run.out.empty() ? "runs/" + config.run.name : config.run.out;
}

}  // namespace

Problems derive_and_compare(Config& config, const std::string& stem) {
  Problems problems;
  derive_run(config, stem, problems);
  const bool absent = config.train.micro_batch_size == 0;
  config.train.micro_batch_size = absent ? config.train.batch_size : config.train.micro_batch_size;
  if (config.train.batch_size % config.train.micro_batch_size != 0) {
    problems.push_back({.where = "train.micro_batch_size",
                        .what = "does not divide train.batch_size",
                        .found = fmt::format("{}", config.train.micro_batch_size),
                        .expected = fmt::format("a divisor of {}", config.train.batch_size)});
  }
  const Problems of_values = problems_of_values(config);
  problems.insert(problems.end(), of_values.begin(), of_values.end());
  add_problems_of_held(config, problems);
  return problems;
}

std::vector<std::string_view> compared_with(std::string_view key) {
  using Keys = std::vector<std::string_view>;
  static const std::map<std::string_view, Keys> table = {
      {"model.d_model", {"model.n_layers", "model.d_ff", "model.max_seq_len", "model.vocab_size", "model.head_dim"}},
      {"model.n_heads", {"model.d_model"}},
      {"model.n_kv_heads", {"model.n_heads"}},
      {"model.head_dim", {"model.d_model", "model.n_heads", "model.position", "model.rope_fraction"}},
      {"model.max_seq_len", {"data.seq_len"}},
      {"model.norm_eps", {"model.norm"}},
      {"optim.warmup_steps", {"train.steps"}},
      {"train.micro_batch_size", {"train.batch_size"}},
  };
  const auto row = table.find(key);
  return row == table.end() ? Keys{} : row->second;
}

Problem located(Problem problem, const Config& config, const ConfigOrigins& origins) {
  const std::string key = problem.where;
  auto origin = origins.find(key);
  if (origin == origins.end()) {
    const ConfigKey* row = find_key(key.substr(0, key.find('.')), key.substr(key.find('.') + 1));
    if (row != nullptr && !problem.found.empty()) {
      problem.found += toml_text(*row, config).empty() ? " (derived)" : " (default)";
    }
    for (const std::string_view other : compared_with(key)) {
      origin = origin == origins.end() ? origins.find(other) : origin;
    }
  }
  problem.where = (origin == origins.end() ? "" : origin->second + ": ") + key;
  return problem;
}

std::vector<std::string> config_notices(const Config& config) {
  std::vector<std::string> notices;
  if (as_held(config).optim.lr == 0) {
    notices.push_back(config.optim.lr == 0
                          ? "optim.lr is 0: the weights stay as they are"
                          : fmt::format("optim.lr {} is 0 in float32: the weights stay as they are", config.optim.lr));
  }
  if (is_for_counting(config.release)) {
    notices.emplace_back("what [release] adds to the model is counted, not trained");
  }
  return notices;
}

}  // namespace minillm
