#include "train/exported_run.h"

#include "core/atomic_file.h"
#include "core/rng.h"
#include "core/text.h"
#include "formats/foreign_model.h"
#include "formats/model_export.h"
#include "train/loaded_run.h"
#include "train/memory_estimate.h"
#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <vector>

namespace minillm {

namespace fs = std::filesystem;

namespace {

constexpr int64_t compared_tokens = 64;

/// Throws an input Error unless the run can be written in the format.
void check_expressible(const ExportFormat& format, const ModelToExport& source, const ExportRequest& request,
                       const std::string& checkpoint) {
  std::vector<std::string> reasons = format.obstacles(source);
  const double eps = source.model.config().norm_eps;
  const bool other_eps = format.fixed_eps && *format.fixed_eps != eps;
  std::string hint;
  if (other_eps && !request.allow_eps) {
    reasons.push_back(fmt::format("model.norm_eps = {}, not {}", eps, *format.fixed_eps));
    hint = "--allow-eps writes it all the same, where only the eps differs, and tells what the logits lose";
  }
  if (!reasons.empty()) {
    fail_input({.where = checkpoint,
                .what = fmt::format("the model cannot be written as {}", format.name),
                .found = join(reasons, "; "),
                .hint = hint});
  }
}

/// Throws an input Error when the export would have to replace something.
void check_place(const ExportFormat& format, const std::string& out) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(out, error);
  if (!fs::exists(status)) {
    return;
  }
  const bool is_empty_folder = fs::is_directory(status) && fs::is_empty(out, error) && !error;
  if (format.is_folder && is_empty_folder) {
    return;
  }
  fail_input({.where = out,
              .what = format.is_folder ? "stands there already; an export makes a new folder"
                                       : "stands there already; an export makes a new file",
              .hint = "choose another with --out"});
}

/// What is written stands under a name of its own until it was compared; without take_name nothing stays.
class Staging {
 public:
  Staging(std::string out, bool is_folder) : out_(std::move(out)), path_(temporary_name(out_)), is_folder_(is_folder) {
    std::error_code error;
    fs::remove_all(path_, error);  // of a killed process of our number
    if (is_folder_ && !fs::create_directory(path_, error)) {
      fail_input({.where = out_,
                  .what = "the folder cannot be made: " + error.message(),
                  .hint = "make the folder that it is to lie in, or choose another with --out"});
    }
  }
  ~Staging() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  const std::string& path() const { return path_; }

  void take_name() {
    std::error_code error;
    if (is_folder_) {
      fs::remove(out_, error);  // an empty folder
    }
    if (const int error_number = put_in_place(path_, out_)) {
      fail_disk(out_, error_number, "");
    }
  }

 private:
  std::string out_;
  std::string path_;
  bool is_folder_;
};

/// Ids from the whole vocabulary, always the same.
std::vector<int32_t> tokens_to_compare(const ModelConfig& config) {
  RandomStream random(random_key(0, "export"));
  std::vector<int32_t> ids(static_cast<size_t>(std::min(compared_tokens, config.max_seq_len)));
  for (int32_t& id : ids) {
    id = static_cast<int32_t>(random.below(static_cast<uint64_t>(config.vocab_size)));
  }
  return ids;
}

std::vector<double> logits_of(const Transformer& model, const std::vector<int32_t>& ids, TapeOptions options) {
  options.record = false;
  options.training = false;
  Tape tape(options);
  return numbers_of(model.logits(tape, ids, 1).value());
}

/// Infinite when the lengths differ or a logit is not a number.
double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double largest = a.size() == b.size() ? 0 : infinity;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (!(difference <= largest)) {
      largest = std::isnan(difference) ? infinity : difference;
    }
  }
  return largest;
}

/// The logits of what was written, computed as a model that was imported is.
std::vector<double> logits_of_written(const ForeignModel& written, double norm_eps, const std::vector<int32_t>& ids) {
  ModelConfig config = written.config;
  config.norm_eps = norm_eps;
  derive(config, 0, 0);
  Transformer model(config);
  check_weights_fit(model, DType::float32, written.weights.path());
  model.allocate(DType::float32, 0, false);
  load_into(model.parameters(), written.weights);
  return logits_of(model, ids, TapeOptions{});
}

/// Throws a work Error unless every id stands for the same bytes in both, and they encode alike.
void compare_tokenizers(const Tokenizer& ours, const std::string& serialized, const std::string& where,
                        const std::vector<int32_t>& ids) {
  const std::unique_ptr<Tokenizer> written = load_tokenizer(serialized, where);
  bool same = written->vocab_size() == ours.vocab_size();
  std::string text;
  for (int32_t id = 0; same && id < ours.vocab_size(); ++id) {
    same = written->bytes(id) == ours.bytes(id) && written->kind(id) == ours.kind(id);
  }
  for (const int32_t id : ids) {
    text += id < ours.vocab_size() ? ours.bytes(id) : std::string_view();
  }
  if (!same || written->encode(text) != ours.encode(text)) {
    fail_work({.where = where, .what = "the tokenizer was read back with other pieces than were written"});
  }
}

/// Rounds the run's matrices to what the type holds; returns by how much that moves a logit at most.
double round_and_compare(const LoadedRun& run, const WeightType& type) {
  if (type.gguf_type == 0) {
    return 0;  // float32 rounds nothing
  }
  const std::vector<int32_t> ids = tokens_to_compare(run.model->config());
  const std::vector<double> before = logits_of(*run.model, ids, tape_options(run.config.train));
  round_matrices(*run.model, type);
  return largest_difference(before, logits_of(*run.model, ids, tape_options(run.config.train)));
}

/// Compares what was written with the run; throws a work Error when it is another model.
void verify(const LoadedRun& run, const ExportFormat& format, const std::string& path, ExportedRun& result) {
  const ForeignModel written = open_foreign_model(path);
  const ModelConfig& config = run.model->config();
  const std::vector<int32_t> ids = tokens_to_compare(config);
  const std::vector<double> expected = logits_of(*run.model, ids, tape_options(run.config.train));
  result.format = written.format;
  result.tokens = static_cast<int64_t>(ids.size());
  result.difference = largest_difference(expected, logits_of_written(written, config.norm_eps, ids));
  if (!(result.difference <= most_logit_difference)) {
    fail_work(
        {.where = result.out,
         .what = fmt::format("the {} that was written computes something else; nothing is left of it", format.name),
         .found = fmt::format("a logit differs by {:.3g} within {} tokens", result.difference, ids.size()),
         .expected = fmt::format("at most {}", most_logit_difference)});
  }
  result.eps = config.norm_eps;
  result.format_eps = format.fixed_eps.value_or(config.norm_eps);
  result.other_eps = result.format_eps != result.eps;
  if (result.other_eps) {
    result.eps_difference = largest_difference(expected, logits_of_written(written, result.format_eps, ids));
  }
  if (run.tokenizer != nullptr && !written.tokenizer.empty()) {
    compare_tokenizers(*run.tokenizer, written.tokenizer, result.out, ids);
    result.has_tokenizer = true;
    result.pieces = run.tokenizer->vocab_size();
  }
}

}  // namespace

ExportedRun export_run(const ExportRequest& request) {
  const ExportFormat& format = export_format(request.format);
  const std::string out = without_slash(request.out);
  check_place(format, out);
  const WeightType& type = weight_type(request.weights.empty() ? "f32" : request.weights);
  if (!format.all_weight_types && type.gguf_type != 0) {
    fail_input({.where = "--weights",
                .what = fmt::format("files of {} are written in f32", format.name),
                .found = std::string(type.name)});
  }
  const LoadedRun run = load_run(request.run, request.checkpoint);
  const ModelToExport source = {*run.model, run.tokenizer.get(), run.config.run.name, type};
  check_expressible(format, source, request, run.checkpoint);
  ExportedRun result;
  result.weights = type.name;
  result.rounding = round_and_compare(run, type);
  result.checkpoint = run.checkpoint;
  result.out = out;
  Staging staging(out, format.is_folder);
  result.left_out = format.write(source, staging.path());
  verify(run, format, staging.path(), result);
  staging.take_name();
  return result;
}

std::string ExportedRun::to_text() const {
  std::string text = fmt::format("{}: {}, from {}\n", printable(out), format, printable(checkpoint));
  text += fmt::format("read back: the logits of {} tokens differ by {:.3g} at most\n", tokens, difference);
  if (weights != "f32") {
    text += fmt::format("rounding the matrices to {} moved a logit by {:.3g} at most\n", weights, rounding);
  }
  if (other_eps) {
    text += fmt::format("its programs take norm_eps = {}, the run's is {}: logits differ by {:.3g} at most\n",
                        format_eps, eps, eps_difference);
  }
  text += has_tokenizer ? fmt::format("tokenizer: {} pieces, read back and equal\n", thousands(pieces)) : "";
  text += left_out.empty() ? "" : "left out: " + left_out + "\n";
  return text;
}

}  // namespace minillm
