#include "train/summary.h"

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json_text.h"
#include "train/line_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace minillm {

namespace {

constexpr double divergence_margin = 1;  // nats above the first loss
constexpr double stall_margin = 0.05;    // nats around the unigram loss
constexpr int64_t first_steps = 100;

bool has_stalled(const std::vector<EvalRecord>& evaluations, double unigram_loss) {
  if (evaluations.empty() || !std::isfinite(unigram_loss)) {
    return false;
  }
  const double last_quarter = 0.75 * static_cast<double>(evaluations.back().step);
  return std::all_of(evaluations.begin(), evaluations.end(), [=](const EvalRecord& evaluation) {
    const bool early = static_cast<double>(evaluation.step) < last_quarter;
    return early || std::abs(evaluation.val_loss - unigram_loss) <= stall_margin;
  });
}

double number_of(const nlohmann::json& json, const char* key) {
  const nlohmann::json& value = json.at(key);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

Summary summary_of(const nlohmann::json& json) {
  Summary summary;
  summary.end = json.value("end", summary.end);  // which earlier versions did not write
  summary.steps = json.at("steps").get<int64_t>();
  summary.parameters = json.at("parameters").get<int64_t>();
  summary.final_val_loss = number_of(json, "final_val_loss");
  summary.best_val_loss = number_of(json, "best_val_loss");
  summary.grad_norm_max_first_100 = number_of(json, "grad_norm_max_first_100");
  summary.diverged = json.at("diverged").get<bool>();
  summary.stalled = json.at("stalled").get<bool>();
  summary.unigram_loss = number_of(json, "unigram_loss");
  summary.tokens_per_s = number_of(json, "tokens_per_s");
  summary.peak_memory_bytes = json.at("peak_memory_bytes").get<int64_t>();
  summary.seconds = number_of(json, "seconds");
  summary.init = json.at("init").get<std::string>();
  summary.version = json.at("version").get<std::string>();
  summary.commit = json.at("commit").get<std::string>();
  summary.numerics = json.at("numerics").get<std::string>();
  summary.threads = json.at("threads").get<int>();
  summary.cpu = json.at("cpu").get<std::string>();
  return summary;
}

}  // namespace

double median(std::vector<double> values) {
  values.erase(std::remove_if(values.begin(), values.end(), [](double value) { return !std::isfinite(value); }),
               values.end());
  if (values.empty()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Summary summarize(const Metrics& metrics, double unigram_loss) {
  Summary summary;
  summary.unigram_loss = unigram_loss;
  std::vector<double> speeds;
  for (const TrainRecord& record : metrics.train) {
    summary.steps = std::max(summary.steps, record.step + 1);
    if (record.step < first_steps) {
      summary.grad_norm_max_first_100 = std::fmax(summary.grad_norm_max_first_100, record.grad_norm);
    }
    const bool bounded = record.loss <= metrics.train.front().loss + divergence_margin;
    summary.diverged = summary.diverged || !bounded;
    speeds.push_back(record.tokens_per_s);
  }
  summary.tokens_per_s = median(std::move(speeds));
  for (const EvalRecord& evaluation : metrics.evaluations) {
    summary.final_val_loss = evaluation.val_loss;
    summary.best_val_loss = std::fmin(summary.best_val_loss, evaluation.val_loss);
  }
  summary.stalled = has_stalled(metrics.evaluations, unigram_loss);
  return summary;
}

std::string to_json(const Summary& summary) {
  const std::pair<const char*, std::string> fields[] = {
      {"end", json_string(summary.end)},
      {"steps", std::to_string(summary.steps)},
      {"parameters", std::to_string(summary.parameters)},
      {"final_val_loss", json_number(summary.final_val_loss)},
      {"best_val_loss", json_number(summary.best_val_loss)},
      {"grad_norm_max_first_100", json_number(summary.grad_norm_max_first_100)},
      {"diverged", summary.diverged ? "true" : "false"},
      {"stalled", summary.stalled ? "true" : "false"},
      {"unigram_loss", json_number(summary.unigram_loss)},
      {"tokens_per_s", json_number(summary.tokens_per_s)},
      {"peak_memory_bytes", std::to_string(summary.peak_memory_bytes)},
      {"seconds", json_number(summary.seconds)},
      {"init", json_string(summary.init)},
      {"version", json_string(summary.version)},
      {"commit", json_string(summary.commit)},
      {"numerics", json_string(summary.numerics)},
      {"threads", std::to_string(summary.threads)},
      {"cpu", json_string(summary.cpu)},
  };
  std::string text;
  for (const auto& [key, value] : fields) {
    text += fmt::format("{}\n  \"{}\": {}", text.empty() ? "{" : ",", key, value);
  }
  return text + "\n}\n";
}

void write_summary(const std::string& path, const Summary& summary) {
  write_file_atomically(path, to_json(summary));
}

std::optional<Summary> read_summary(const std::string& path) {
  const std::string text = read_text(path);
  if (text.empty()) {
    return std::nullopt;
  }
  try {
    return summary_of(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    fail_input({.where = path, .what = "not the summary of a run", .hint = error.what()});
  }
}

}  // namespace minillm
