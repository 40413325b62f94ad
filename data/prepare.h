#pragma once
// prepare: text files to one HDF5 data file with both splits and the tokenizer inside.
//
// Documents: every file is one; with a separator, lines equal to it part documents. `<s>` stands before each. /val is
// the last val_share of the bytes, cut at a line end; a document may continue there, and no `<s>` is added then.
// Nothing is normalised: carriage returns, byte order marks, NUL and invalid bytes are kept and reported. The tokenizer
// learns from the training part only, from a sample when that is larger than sample_bytes. Every block of text is
// decoded again and compared.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace minillm {

struct PrepareOptions {
  std::vector<std::string> inputs;  ///< files and folders; see find_corpus
  std::string out;                  ///< the data file
  /// 2048 when a tokenizer is trained; with tokenizer_path it must be that one's size.
  std::optional<int64_t> vocab_size;
  double val_share = 0.1;                    ///< in [0, 1)
  std::string tokenizer_path;                ///< a SentencePiece model or a data file; empty: train one
  std::optional<std::string> separator;      ///< a line between documents; "" for blank lines
  int64_t sample_bytes = int64_t{64} << 20;  ///< the most text the tokenizer learns from
};

struct PrepareSummary {
  std::string out;
  std::string sha256;  ///< of the data
  int64_t vocab_size = 0;
  int64_t files = 0;
  int64_t documents = 0;
  int64_t train_bytes = 0;
  int64_t val_bytes = 0;
  int64_t train_tokens = 0;
  int64_t val_tokens = 0;
  double byte_share = 0;               ///< byte pieces other than newlines, of all tokens
  std::optional<double> unigram_loss;  ///< nats per token; none without /val
  int64_t lines = 0;
  int64_t crlf_lines = 0;
  int64_t bom_files = 0;
  int64_t nul_bytes = 0;
  int64_t invalid_bytes = 0;
  bool trained = false;         ///< the four below are about a tokenizer trained here
  int64_t trained_bytes = 0;    ///< it learned from
  int64_t characters = 0;       ///< distinct ones it met
  int64_t characters_kept = 0;  ///< less than `characters`: the rest is left to byte pieces
  bool sampled = false;         ///< trained_bytes are a part of the training text
  bool cut_at_line_end = true;
  double asked_val_share = 0;  ///< a line longer than that can make the share of val_bytes quite another

  double bytes_per_token() const;
  /// Windows of seq_len an epoch has.
  int64_t windows(int64_t seq_len) const;

  /// Several lines for a person, the notes (carriage returns, marks, small splits) last.
  std::string to_text() const;
};

/// Throws an input Error for what the text, the options or the target make impossible, a work Error when the disk
/// fills; no file is left then, and an older one stays.
PrepareSummary prepare(const PrepareOptions& options);

}  // namespace minillm
