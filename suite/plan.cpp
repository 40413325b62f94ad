#include "suite/plan.h"

#include "core/atomic_file.h"
#include "core/json_object.h"
#include "core/text.h"
#include "nn/ledger.h"
#include "nn/match.h"
#include "train/complete_config.h"
#include "train/line_log.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

namespace minillm {

namespace {

int64_t parameters_of(const Config& config) {
  return Transformer(config.model).parameters().count();
}

/// The settings of a suite's variants, with the widths that make them match.
class VariantConfigs {
 public:
  explicit VariantConfigs(const Suite& suite) : suite_(suite) {}

  std::vector<std::string> overrides_of(const Variant& variant) {
    std::vector<std::string> overrides = variant.overrides;
    if (!variant.match.empty()) {
      overrides.push_back(fmt::format("model.d_ff={}", matched_width(variant)));
    }
    return overrides;
  }

 private:
  int64_t matched_width(const Variant& variant) {
    const auto known = widths_.find(variant.name);
    if (known != widths_.end()) {
      return known->second;
    }
    const Variant& model = find(variant.match);
    const int64_t wanted = parameters_of(load_without_data(model.base, overrides_of(model)).config);
    const LoadedConfig own = load_without_data(variant.base, variant.overrides);
    return widths_[variant.name] = match_parameters(own.config.model, wanted).d_ff;
  }

  const Variant& find(const std::string& name) const {
    return *std::find_if(suite_.variants.begin(), suite_.variants.end(),
                         [&](const Variant& variant) { return variant.name == name; });
  }

  const Suite& suite_;
  std::map<std::string, int64_t> widths_;
};

std::vector<Variant> chosen(const Suite& suite, const std::string& only) {
  if (only.empty()) {
    return suite.variants;
  }
  std::vector<Variant> variants;
  std::vector<std::string> names;
  for (const Variant& variant : suite.variants) {
    if (variant.name == only || variant.run == only) {
      variants.push_back(variant);
    }
    names.push_back(variant.name);
  }
  if (variants.empty()) {
    const std::string near = did_you_mean(only, names);
    fail_input({.where = "--only",
                .what = "no run of the suite has this name",
                .found = only,
                .hint = near.empty() ? "the runs are " + join(names) : near});
  }
  return variants;
}

std::string plan_path(const std::string& out) {
  return out + "/suite.json";
}

/// Relative to the folder, so that both can be moved together.
std::string from_folder(const std::string& path, const std::string& folder) {
  return path.empty() ? "" : std::filesystem::relative(path, folder).string();
}

double flops_of(const Transformer& model, const Config& config) {
  const double tokens = static_cast<double>(config.train.steps * config.train.batch_size * config.data.seq_len);
  return tokens * static_cast<double>(training_flops(model, config.data.seq_len).total());
}

PlannedRun planned_run(const Variant& variant, uint64_t seed, const std::string& out, VariantConfigs& configs) {
  PlannedRun run{.variant = variant.name, .seed = seed, .folder = {}, .loaded = {}, .complete = {}};
  run.folder = out + "/" + run.name();
  try {
    std::vector<std::string> overrides = configs.overrides_of(variant);
    overrides.push_back(fmt::format("train.seed={}", seed));
    overrides.push_back("run.name=" + toml_quoted(run.name()));
    overrides.push_back("run.out=" + toml_quoted(run.folder));
    run.loaded = load_config(variant.base, overrides);
    run.complete = completed_without_data(run.loaded).config;
    const Transformer model(run.complete.model);
    run.parameters = model.parameters().count();
    run.flops = flops_of(model, run.complete);
    return run;
  } catch (const Error& error) {
    fail_input({.where = "run " + variant.name, .what = error.what()});
  }
}

}  // namespace

Plan make_plan(const Suite& suite, const std::string& out, const std::string& only) {
  Plan plan{.out = out, .suite = suite, .runs = {}};
  const std::vector<Variant> variants = chosen(suite, only);
  VariantConfigs configs(suite);
  size_t most_seeds = 0;
  for (const Variant& variant : variants) {
    most_seeds = std::max(most_seeds, variant.seeds.size());
  }
  for (size_t i = 0; i < most_seeds; ++i) {
    for (const Variant& variant : variants) {
      if (i < variant.seeds.size()) {
        plan.runs.push_back(planned_run(variant, variant.seeds[i], out, configs));
      }
    }
  }
  return plan;
}

void write_plan(const Plan& plan) {
  std::vector<JsonObject> variants;
  for (const Variant& variant : plan.suite.variants) {
    JsonObject json;
    json.add("name", variant.name);
    json.add("reference", variant.reference);
    variants.push_back(json);
  }
  std::vector<std::string> runs;
  for (const PlannedRun& run : plan.runs) {
    runs.push_back(run.name());
  }
  JsonObject json;
  json.add("name", plan.suite.name);
  json.add("runs", runs);
  json.add("noise_floor", from_folder(plan.suite.noise_floor, plan.out));
  json.add("variants", variants);
  write_file_atomically(plan_path(plan.out), json.text() + "\n");
}

std::optional<SuiteRecord> read_plan(const std::string& out) {
  const std::string text = read_text(plan_path(out));
  if (text.empty()) {
    return std::nullopt;
  }
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    SuiteRecord record{.name = json.at("name").get<std::string>(),
                       .runs = json.value("runs", std::vector<std::string>{}),  // which earlier versions did not write
                       .variants = {},
                       .references = {},
                       .noise_floor = json.at("noise_floor").get<std::string>()};
    for (const nlohmann::json& variant : json.at("variants")) {
      record.variants.push_back(variant.at("name").get<std::string>());
      record.references.push_back(variant.at("reference").get<std::string>());
    }
    if (!record.noise_floor.empty()) {
      record.noise_floor = (std::filesystem::path(out) / record.noise_floor).lexically_normal().string();
    }
    return record;
  } catch (const nlohmann::json::exception& error) {
    fail_input({.where = plan_path(out), .what = "not a suite's plan", .hint = error.what()});
  }
}

}  // namespace minillm
