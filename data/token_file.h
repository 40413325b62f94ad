#pragma once
// TokenFile: what a run trains and is evaluated on, in memory: both splits, their vocabulary and where they come from.
//
// On disk (HDF5, `minillm-tokens` version 1): /train and /val of u16 (vocabulary <= 65,536) or u32, chunked, each with
// the attribute bytes (absent for imported tokens); /tokenizer, the serialized model (absent for imported tokens);
// attributes of the file: format, version, vocab_size, tokenizer_sha256, source, unigram_loss (absent without /val).

#include "data/h5_file.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace minillm {

/// A run of token ids, 2 or 4 bytes each.
class Tokens {
 public:
  Tokens() = default;
  explicit Tokens(std::vector<uint16_t> ids) : narrow_(std::move(ids)) {}
  explicit Tokens(std::vector<uint32_t> ids) : wide_(std::move(ids)) {}

  int64_t size() const { return static_cast<int64_t>(wide_.empty() ? narrow_.size() : wide_.size()); }

  /// Not checked: ids are compared with the vocabulary once, when they are loaded.
  int32_t operator[](int64_t position) const {
    const size_t i = static_cast<size_t>(position);
    return wide_.empty() ? static_cast<int32_t>(narrow_[i]) : static_cast<int32_t>(wide_[i]);
  }

 private:
  std::vector<uint16_t> narrow_;
  std::vector<uint32_t> wide_;  // one of the two is empty
};

/// With one id there is nothing to predict, and no model is that small.
inline constexpr int64_t smallest_token_vocabulary = 2;

struct TokenFile {
  std::string path;  ///< as given; "synthetic" for the built-in corpus
  Tokens train;
  Tokens val;
  int64_t vocab_size = 0;
  std::string tokenizer;         ///< serialized, for load_tokenizer; empty for imported tokens
  std::string tokenizer_sha256;  ///< empty for imported tokens
  std::optional<int64_t> train_bytes;
  std::optional<int64_t> val_bytes;  ///< what bits per byte divides by
  std::optional<double> unigram_loss;
  std::string source;  ///< files and checksums the tokens were made from
  std::string sha256;  ///< of the data: the file's stamp

  /// Throws an input Error naming file and dataset: see H5Reader; ids >= vocab_size with position and value.
  static TokenFile open(const std::string& path);
};

/// The `[data] path` of a config: a file of `minillm prepare`, or "synthetic".
TokenFile open_data(const std::string& path);

/// The format of data files, for who writes them.
H5Format token_format();

}  // namespace minillm
