#include "train/banner.h"

#include "core/build_info.h"
#include "core/kernels/gemm.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "core/proc.h"
#include "core/terminal.h"
#include "core/text.h"
#include "data/loader.h"
#include "nn/ledger.h"
#include "train/metrics.h"

#include <cmath>
#include <string>

namespace minillm {

namespace {

std::string text_or_unknown(double value) {
  return std::isnan(value) ? "unknown" : fmt::format("{:.4f}", value);
}

/// What the run can be used for, as a command without its last word, the run; "" for nothing.
std::string next_command(const Config& config, const TokenFile& data, bool is_complete) {
  if (!is_complete) {
    return "minillm train --resume";
  }
  if (!data.tokenizer.empty()) {
    return "minillm generate";
  }
  return window_count(data.val, config.data.seq_len) > 0 ? "minillm eval" : "";
}

}  // namespace

std::string parameter_table(const Transformer& model) {
  const Ledger ledger = make_ledger(model);
  Table table({"part", "parameters", "share of all"});
  for (const TensorGroup& group : ledger.groups) {
    table.add_row({std::string(group.name()), thousands(group.parameters), fmt::format("{:.1f} %", 100 * group.share)});
  }
  table.add_rule();
  table.add_row({"all", thousands(ledger.parameters), "100 %"});
  return table.text();
}

void log_banner(const Config& config, const TokenFile& data, const Transformer& model, const AdamW& optimizer) {
  log_info("minillm {}, products by {}, {} of {} usable cores, {} kernels, {} ops", version(), kernels::gemm_engine(),
           counted(num_threads(), "thread"), usable_cores(),
           config.train.dtype == "float64" ? "reference" : config.train.kernels, config.train.ops);
  const int64_t T = config.data.seq_len;
  log_info("data {}: {} training tokens ({} windows of {}), {} validation tokens, vocabulary {}", data.path,
           thousands(data.train.size()), thousands(window_count(data.train, T)), T, thousands(data.val.size()),
           thousands(data.vocab_size));
  log_info("{}", parameter_table(model));
  for (const ParameterGroup& group : optimizer.groups()) {
    log_info("{}", to_string(group));
  }
  const double uniform = std::log(static_cast<double>(config.model.vocab_size));
  log_info("expected first loss ln {} = {:.4f}; unigram loss {}", config.model.vocab_size, uniform,
           text_or_unknown(data.unigram_loss.value_or(std::nan(""))));
}

void log_end(const Config& config, const TokenFile& data, const Metrics& metrics, const Summary& summary,
             std::string_view reason) {
  Series training{.name = "train", .x = {}, .y = {}};
  Series validation{.name = "val", .x = {}, .y = {}};
  for (const TrainRecord& record : metrics.train) {
    training.x.push_back(static_cast<double>(record.step));
    training.y.push_back(record.loss);
  }
  for (const EvalRecord& record : metrics.evaluations) {
    validation.x.push_back(static_cast<double>(record.step));
    validation.y.push_back(record.val_loss);
  }
  log_info("{}", curve({training, validation}, {.braille = terminal_is_utf8()}));
  log_info("{}: {} steps in {}, {} tokens/s (median), final val_loss {}, best {}{}{}", reason, summary.steps,
           duration_text(summary.seconds),
           std::isnan(summary.tokens_per_s) ? "-" : thousands(std::llround(summary.tokens_per_s)),
           text_or_unknown(summary.final_val_loss), text_or_unknown(summary.best_val_loss),
           summary.diverged ? ", diverged" : "", summary.stalled ? ", stalled at the unigram loss" : "");
  const std::string next = next_command(config, data, summary.steps >= config.train.steps);
  log_info("in {}{}", config.run.out,
           next.empty() ? "" : fmt::format("; next: {} {}", next, shell_word(config.run.out)));
}

void complete_summary(Summary& summary) {
  summary.version = version();
  summary.commit = commit();
  summary.numerics = numerics();
  summary.threads = num_threads();
  summary.cpu = proc_value("/proc/cpuinfo", "model name");
  summary.peak_memory_bytes = peak_memory_bytes();
}

}  // namespace minillm
