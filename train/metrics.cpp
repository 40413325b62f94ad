#include "train/metrics.h"

#include "core/error.h"
#include "core/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace minillm {

namespace {

double number_or_nan(const nlohmann::json& line, const char* key) {
  const nlohmann::json& value = line.at(key);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

void add_line(const std::string& text, Metrics& metrics) {
  const nlohmann::json line = nlohmann::json::parse(text);
  if (line.contains("val_loss")) {
    metrics.evaluations.push_back({.step = line.at("step").get<int64_t>(),
                                   .val_loss = number_or_nan(line, "val_loss"),
                                   .val_bits_per_byte = number_or_nan(line, "val_bits_per_byte")});
  } else {
    metrics.train.push_back({.step = line.at("step").get<int64_t>(),
                             .loss = number_or_nan(line, "loss"),
                             .grad_norm = number_or_nan(line, "grad_norm"),
                             .lr = number_or_nan(line, "lr"),
                             .tokens = line.at("tokens").get<int64_t>(),
                             .tokens_per_s = number_or_nan(line, "tokens_per_s")});
  }
}

}  // namespace

std::string to_json(const TrainRecord& record) {
  return fmt::format(R"({{"step":{},"loss":{},"grad_norm":{},"lr":{},"tokens":{},"tokens_per_s":{}}})", record.step,
                     json_number(record.loss), json_number(record.grad_norm), json_number(record.lr), record.tokens,
                     json_number(record.tokens_per_s));
}

std::string to_json(const EvalRecord& record) {
  return fmt::format(R"({{"step":{},"val_loss":{},"val_bits_per_byte":{}}})", record.step, json_number(record.val_loss),
                     json_number(record.val_bits_per_byte));
}

Metrics read_metrics(const std::string& path) {
  Metrics metrics;
  int64_t number = 0;
  for (const std::string& line : read_lines(path)) {
    ++number;
    try {
      add_line(line, metrics);
    } catch (const nlohmann::json::exception& error) {
      fail_input({.where = fmt::format("{}:{}", path, number),
                  .what = "not a line of metrics",
                  .found = line.substr(0, 80),
                  .hint = error.what()});
    }
  }
  return metrics;
}

MetricsWriter::MetricsWriter(std::string path, int64_t keep_bytes) : log_(std::move(path), keep_bytes) {
  const Metrics kept = read_metrics(log_.path());
  last_train_step_ = kept.train.empty() ? -1 : kept.train.back().step;
  last_eval_step_ = kept.evaluations.empty() ? -1 : kept.evaluations.back().step;
}

void MetricsWriter::append(const TrainRecord& record) {
  check(record.step > last_train_step_, "{} holds step {} already, asked to write step {}", log_.path(),
        last_train_step_, record.step);
  log_.append(to_json(record));
  last_train_step_ = record.step;
}

void MetricsWriter::append(const EvalRecord& record) {
  check(record.step > last_eval_step_, "{} holds the evaluation after {} steps already, asked to write that after {}",
        log_.path(), last_eval_step_, record.step);
  log_.append(to_json(record));
  last_eval_step_ = record.step;
}

}  // namespace minillm
