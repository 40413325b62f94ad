#include "train/summary.h"

#include "core/atomic_file.h"

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

std::string text_of(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

std::string text_of(int64_t value) {
  return fmt::format("{}", value);
}

std::string text_of(bool value) {
  return value ? "true" : "false";
}

/// Bytes that are no UTF-8 become U+FFFD: the file is JSON whatever a machine calls its processor.
std::string text_of(const std::string& value) {
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

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

}  // namespace

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
      {"steps", text_of(summary.steps)},
      {"parameters", text_of(summary.parameters)},
      {"final_val_loss", text_of(summary.final_val_loss)},
      {"best_val_loss", text_of(summary.best_val_loss)},
      {"grad_norm_max_first_100", text_of(summary.grad_norm_max_first_100)},
      {"diverged", text_of(summary.diverged)},
      {"stalled", text_of(summary.stalled)},
      {"unigram_loss", text_of(summary.unigram_loss)},
      {"tokens_per_s", text_of(summary.tokens_per_s)},
      {"peak_memory_bytes", text_of(summary.peak_memory_bytes)},
      {"seconds", text_of(summary.seconds)},
      {"version", text_of(summary.version)},
      {"commit", text_of(summary.commit)},
      {"numerics", text_of(summary.numerics)},
      {"threads", text_of(int64_t{summary.threads})},
      {"cpu", text_of(summary.cpu)},
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

}  // namespace minillm
