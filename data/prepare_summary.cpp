#include "data/prepare.h"

#include "core/error.h"
#include "core/text.h"

#include <algorithm>
#include <cmath>

namespace minillm {

namespace {

/// What a run needs to change to train on splits that the usual window of 256 tokens does not fit in.
std::string note_about_windows(const PrepareSummary& summary) {
  if (summary.val_tokens == 1) {
    return "the validation split is a single token, too short for any window: set train.eval_every to 0";
  }
  const bool val_counts = summary.val_tokens > 0 && summary.val_tokens < summary.train_tokens;
  const int64_t shorter = val_counts ? summary.val_tokens : summary.train_tokens;
  if (shorter > 256) {
    return "";
  }
  return fmt::format("the {} split is shorter than a window of 256: set data.seq_len to at most {}",
                     val_counts ? "validation" : "training", shorter - 1);
}

std::string notes(const PrepareSummary& summary) {
  std::string text;
  const auto note = [&](const std::string& line) { text += "note: " + line + "\n"; };
  if (summary.sampled) {
    note(fmt::format("the tokenizer learned from a sample of {} bytes of the training text",
                     thousands(summary.trained_bytes)));
  }
  if (summary.characters_kept < summary.characters) {
    note(fmt::format("the vocabulary holds the {} most frequent of {} characters; the others become byte tokens",
                     thousands(summary.characters_kept), thousands(summary.characters)));
  }
  if (summary.crlf_lines > 0) {
    note(fmt::format("{} of {} lines end in CR LF; the carriage returns stay in the text{}",
                     thousands(summary.crlf_lines), thousands(summary.lines),
                     2 * summary.crlf_lines > summary.lines ? " (tr -d '\\r' removes them)" : ""));
  }
  if (summary.bom_files > 0) {
    note(fmt::format("{} of {} files begin with a byte order mark; its three bytes stay in the text",
                     thousands(summary.bom_files), thousands(summary.files)));
  }
  if (summary.nul_bytes + summary.invalid_bytes > 0) {
    note(fmt::format("{} NUL bytes and {} bytes that are not UTF-8 are kept as byte tokens",
                     thousands(summary.nul_bytes), thousands(summary.invalid_bytes)));
  }
  if (!summary.cut_at_line_end) {
    note("there is no line end to cut at: the validation split begins inside a line");
  }
  const double share = static_cast<double>(summary.val_bytes) /
                       static_cast<double>(std::max<int64_t>(1, summary.train_bytes + summary.val_bytes));
  if (std::abs(share - summary.asked_val_share) > summary.asked_val_share / 2) {
    note(fmt::format("the validation split is {:.1f} % of the text, {:.1f} % were asked for: it begins {}", 100 * share,
                     100 * summary.asked_val_share,
                     summary.cut_at_line_end ? "at a line end" : "between two words or characters"));
  }
  if (const std::string windows = note_about_windows(summary); !windows.empty()) {
    note(windows);
  }
  if (summary.val_tokens == 0) {
    note("the validation split is empty: such a run cannot be evaluated");
  }
  return text;
}

}  // namespace

double PrepareSummary::bytes_per_token() const {
  return static_cast<double>(train_bytes + val_bytes) /
         static_cast<double>(std::max<int64_t>(1, train_tokens + val_tokens));
}

int64_t PrepareSummary::windows(int64_t seq_len) const {
  return train_tokens == 0 ? 0 : (train_tokens - 1) / seq_len;
}

std::string PrepareSummary::to_text() const {
  std::string text = fmt::format("{}: {} from {}\n", out, counted(documents, "document"), counted(files, "file"));
  text += fmt::format("  train         {:>14} tokens {:>16} bytes\n", thousands(train_tokens), thousands(train_bytes));
  text += fmt::format("  val           {:>14} tokens {:>16} bytes\n", thousands(val_tokens), thousands(val_bytes));
  text += fmt::format("  vocabulary    {:>14} pieces {:>16.3f} bytes per token, {:.2f} % byte tokens\n",
                      thousands(vocab_size), bytes_per_token(), 100 * byte_share);
  text += fmt::format("  epoch         {:>14} windows of 256 tokens\n", thousands(windows(256)));
  if (unigram_loss) {
    text += fmt::format("  unigram loss  {:>14.4f} nats per token on val: what token frequencies alone reach\n",
                        *unigram_loss);
  }
  return text + notes(*this);
}

}  // namespace minillm
