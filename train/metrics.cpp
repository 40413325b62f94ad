#include "train/metrics.h"

#include "core/error.h"
#include "core/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace minillm {

namespace {

std::string json_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

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

/// The size of the whole lines within the first `limit` bytes.
int64_t whole_lines(const std::string& text, int64_t limit) {
  const size_t kept = std::min(text.size(), static_cast<size_t>(limit));
  const size_t end = kept == 0 ? std::string::npos : text.rfind('\n', kept - 1);
  return end == std::string::npos ? 0 : static_cast<int64_t>(end) + 1;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return file ? text.str() : std::string();
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
  const std::string text = read_text(path);
  Metrics metrics;
  int64_t number = 0;
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    ++number;
    try {
      add_line(text.substr(begin, end - begin), metrics);
    } catch (const nlohmann::json::exception& error) {
      fail_input({.where = fmt::format("{}:{}", path, number),
                  .what = "not a line of metrics",
                  .found = text.substr(begin, std::min<size_t>(end - begin, 80)),
                  .hint = error.what()});
    }
    begin = end + 1;
  }
  return metrics;
}

MetricsWriter::MetricsWriter(std::string path, int64_t keep_bytes) : path_(std::move(path)) {
  check(keep_bytes >= 0, "the size to keep of {} is at least 0, found {}", path_, keep_bytes);
  const std::string text = read_text(path_);
  bytes_ = whole_lines(text, keep_bytes);
  if (bytes_ < keep_bytes) {
    log_warning("{} holds {} of the {} bytes that the checkpoint knows: some steps are missing in it", path_, bytes_,
                keep_bytes);
  }
  file_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file_ || ftruncate(file_.get(), bytes_) != 0) {
    fail_input({.where = path_, .what = "cannot be written: " + system_error_text(errno)});
  }
  const Metrics kept = read_metrics(path_);
  last_train_step_ = kept.train.empty() ? -1 : kept.train.back().step;
  last_eval_step_ = kept.evaluations.empty() ? -1 : kept.evaluations.back().step;
}

void MetricsWriter::append(const TrainRecord& record) {
  check(record.step > last_train_step_, "{} holds step {} already, asked to write step {}", path_, last_train_step_,
        record.step);
  append_line(to_json(record));
  last_train_step_ = record.step;
}

void MetricsWriter::append(const EvalRecord& record) {
  check(record.step > last_eval_step_, "{} holds the evaluation after {} steps already, asked to write that after {}",
        path_, last_eval_step_, record.step);
  append_line(to_json(record));
  last_eval_step_ = record.step;
}

void MetricsWriter::append_line(const std::string& line) {
  const std::string text = line + '\n';
  ssize_t written = -1;
  do {
    written = ::write(file_.get(), text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written != static_cast<ssize_t>(text.size())) {
    // A short write sets no error number; a full disk is what it means.
    const int error_number = written < 0 ? errno : ENOSPC;
    const bool cut = ftruncate(file_.get(), bytes_) == 0;
    fail_work({.where = path_,
               .what = "cannot be written: " + system_error_text(error_number),
               .hint = cut ? "" : "its last line is not whole; a resume cuts it off"});
  }
  bytes_ += written;
}

int64_t MetricsWriter::sync() {
  // Pipes and some file systems cannot be flushed; only a failing disk is an error.
  if (fsync(file_.get()) != 0 && errno != EINVAL && errno != EROFS) {
    fail_work({.where = path_, .what = "cannot be written: " + system_error_text(errno)});
  }
  return bytes_;
}

}  // namespace minillm
