#pragma once
// import_tokens: token ids other tools have made become a data file. Raw little-endian files (nanoGPT's train.bin), and
// llm.c's with a header of 256 int32: magic, version, number of tokens; 20240520/1 holds u16, 20240801/7 u32.

#include <cstdint>
#include <string>

namespace minillm {

struct ImportOptions {
  std::string file;
  std::string out;
  int64_t vocab_size = 0;
  std::string val_file;    ///< empty: /val is the last val_share of the tokens
  double val_share = 0.1;  ///< in [0, 1)
  std::string dtype;       ///< "u16", "u32"; empty: by the header, else u16 when the vocabulary fits, else u32
};

struct ImportSummary {
  std::string out;
  std::string sha256;
  int64_t vocab_size = 0;
  int64_t train_tokens = 0;
  int64_t val_tokens = 0;
  double unigram_loss = 0;  ///< NaN without /val

  std::string to_text() const;
};

/// Throws an input Error for ids outside the vocabulary (position and value), sizes that do not fit, unknown headers.
ImportSummary import_tokens(const ImportOptions& options);

}  // namespace minillm
