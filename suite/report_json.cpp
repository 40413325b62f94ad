// A comparison as the JSON that the report's page reads.

#include "core/build_info.h"
#include "core/json_object.h"
#include "suite/report.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <map>

namespace minillm {

namespace {

/// How many points a curve keeps, and how exact.
struct Detail {
  size_t most_points;
  bool is_rounded;
};

constexpr Detail everything = {std::numeric_limits<size_t>::max(), false};
constexpr Detail what_a_screen_shows = {1000, true};

double rounded(double value, const Detail& detail) {
  return detail.is_rounded && std::isfinite(value) ? std::stod(fmt::format("{:.5g}", value)) : value;
}

/// A column of every k-th row, the last one always.
template <class Record, class Value>
std::vector<double> column(const std::vector<Record>& records, const Detail& detail, Value value_of) {
  const size_t most = std::min(detail.most_points, std::max<size_t>(1, records.size()));
  const size_t stride = std::max<size_t>(1, (records.size() + most - 1) / most);
  std::vector<double> values;
  for (size_t i = 0; i < records.size(); i += stride) {
    values.push_back(rounded(value_of(records[i]), detail));
  }
  if (!records.empty() && (records.size() - 1) % stride != 0) {
    values.push_back(rounded(value_of(records.back()), detail));
  }
  return values;
}

JsonObject settings_of(Config config) {
  JsonObject json;
  for (const ConfigKey& key : config_keys()) {
    const std::string text = toml_text(key, config);
    if (!text.empty()) {
      json.add(key.path(), text);
    }
  }
  return json;
}

JsonObject run_json(const RunRecord& run, const std::string& group, const Detail& detail) {
  JsonObject json;
  json.add("name", run.suite + run.name());
  json.add("variant", group);
  json.add("seed", run.seed());
  json.add("folder", run.folder);
  json.add("state", run.summary.end);
  json.add("seconds", run.summary.seconds);
  json.add("tokens_per_step", run.tokens_per_step());
  const std::vector<TrainRecord>& train = run.metrics.train;
  json.add("steps", column(train, detail, [](const TrainRecord& r) { return static_cast<double>(r.step); }));
  json.add("loss", column(train, detail, [](const TrainRecord& r) { return r.loss; }));
  json.add("grad_norm", column(train, detail, [](const TrainRecord& r) { return r.grad_norm; }));
  json.add("lr", column(train, detail, [](const TrainRecord& r) { return r.lr; }));
  json.add("tokens_per_s", column(train, detail, [](const TrainRecord& r) { return r.tokens_per_s; }));
  const std::vector<EvalRecord>& evaluations = run.metrics.evaluations;
  json.add("eval_steps", column(evaluations, detail, [](const EvalRecord& r) { return static_cast<double>(r.step); }));
  json.add("val_loss", column(evaluations, detail, [](const EvalRecord& r) { return r.val_loss; }));
  json.add("val_bits_per_byte", column(evaluations, detail, [](const EvalRecord& r) { return r.val_bits_per_byte; }));
  json.add_raw("layers", run.layers);
  json.add("config", settings_of(run.config));
  return json;
}

void add_noise(JsonObject& json, const NoiseFloor& noise) {
  if (!noise.is_known()) {
    json.add_null("noise");
    return;
  }
  JsonObject object;
  object.add("sigma", noise.sigma);
  object.add("range", noise.range);
  object.add("runs", noise.seeds);
  object.add("of", noise.of);
  object.add("same_seed_difference", noise.same_seed_difference);
  object.add("threshold_run", noise.of_means());
  object.add("threshold_difference", noise.of_single_runs());
  json.add("noise", object);
}

JsonObject group_json(const Comparison& comparison, const RunGroup& group) {
  JsonObject json;
  json.add("name", group.name);
  json.add("reference", comparison.groups[group.reference].name);
  std::vector<int32_t> runs(group.runs.begin(), group.runs.end());
  json.add("runs", runs);
  json.add("parameters", group.parameters);
  json.add("parameter_difference_percent", group.parameter_difference);
  json.add("val_loss", group.val_loss);
  json.add("val_sd", group.val_sd);
  json.add("delta", group.delta);
  json.add("delta_sigmas", group.delta_sigmas);
  json.add("tokens_per_s", group.tokens_per_s);
  json.add("speed_measurements", static_cast<int64_t>(group.speeds.size()));
  json.add("grad_norm_max_first_100", group.grad_norm_max_first_100);
  json.add("loss_oscillation", group.loss_oscillation);
  json.add("seeds", group.seeds);
  json.add("ended", group.ended);
  json.add("failed", group.failed);
  json.add("stalled", group.stalled);
  json.add("diverged", group.diverged);
  json.add("verdict", verdict_word(group.verdict));
  json.add("sentence", group.sentence);
  add_noise(json, group.noise);
  std::vector<JsonObject> changes;
  for (const ConfigChange& change : group.changes) {
    JsonObject of_key;
    of_key.add("key", change.key);
    of_key.add("before", change.before);
    of_key.add("after", change.after);
    changes.push_back(of_key);
  }
  json.add("changes", changes);
  return json;
}

std::vector<JsonObject> lints_json(const Comparison& comparison) {
  std::vector<JsonObject> lints;
  for (const auto& [where, finding] : comparison.findings) {
    JsonObject json;
    json.add("id", finding.rule->id);
    json.add("severity", severity_name(finding.rule->severity));
    json.add("where", where);
    json.add("what", fmt::format("{}: {}", finding.rule->name, finding.what));
    json.add("advice", finding.advice);
    lints.push_back(json);
  }
  return lints;
}

/// What the runs ran on, and how many of them.
std::vector<JsonObject> environment_json(const Comparison& comparison) {
  std::map<std::vector<std::string>, int64_t> counts;
  for (const RunRecord& run : comparison.runs) {
    const Summary& summary = run.summary;
    ++counts[{summary.numerics, summary.version, summary.commit, summary.cpu, std::to_string(summary.threads)}];
  }
  std::vector<JsonObject> environments;
  for (const auto& [key, count] : counts) {
    JsonObject json;
    json.add("numerics", key[0]);
    json.add("version", key[1]);
    json.add("commit", key[2]);
    json.add("cpu", key[3]);
    json.add_raw("threads", key[4]);
    json.add("runs", count);
    environments.push_back(json);
  }
  return environments;
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local);
  return text;
}

JsonObject comparison_json(const Comparison& comparison, const Detail& detail) {
  std::vector<JsonObject> groups;
  std::vector<std::string> group_of(comparison.runs.size());
  for (const RunGroup& group : comparison.groups) {
    groups.push_back(group_json(comparison, group));
    for (const size_t run : group.runs) {
      group_of[run] = group.name;
    }
  }
  std::vector<JsonObject> runs;
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    runs.push_back(run_json(comparison.runs[i], group_of[i], detail));
  }
  JsonObject json;
  json.add("title", comparison.title);
  json.add("made", now_text());
  json.add("version", version());
  json.add("tokens_per_step", comparison.runs.front().tokens_per_step());
  add_noise(json, comparison.noise);
  json.add("reference", comparison.groups[comparison.groups.front().reference].name);
  json.add("unigram_loss", comparison.unigram_loss());
  json.add("variants", groups);
  json.add("runs", runs);
  json.add("lints", lints_json(comparison));
  json.add("environment", environment_json(comparison));
  return json;
}

}  // namespace

std::string report_json(const Comparison& comparison) {
  return comparison_json(comparison, everything).text();
}

std::string page_json(const Comparison& comparison, const PageOptions& options) {
  std::vector<JsonObject> figures;
  if (!options.figure.empty()) {
    JsonObject figure;
    figure.add("title", "Validation loss");
    figure.add("svg", options.figure);
    figures.push_back(figure);
  }
  JsonObject json = comparison_json(comparison, what_a_screen_shows);
  json.add("watch_seconds", static_cast<int64_t>(options.watch_seconds));
  json.add("figures", figures);
  return json.text();
}

}  // namespace minillm
