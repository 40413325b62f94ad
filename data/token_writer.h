#pragma once
// TokenWriter: makes the HDF5 data file (see token_file.h) from ids that arrive piece by piece, in bounded memory.

#include "data/h5_file.h"
#include "data/tokenizer.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace minillm {

enum class Split { train, val };

class TokenWriter {
 public:
  /// Opens the target at once: a folder that cannot be written is noticed before the work, not after it.
  explicit TokenWriter(const std::string& path);
  ~TokenWriter();

  /// Ids are stored in 2 bytes when the vocabulary allows, else in 4. Called once, before append. Throws an input Error
  /// when counts of that many ids do not fit the memory.
  void begin(int64_t vocab_size);

  /// Throws an input Error for an id outside the vocabulary.
  void append(Split split, const std::vector<int32_t>& ids);

  int64_t tokens(Split split) const;
  const std::vector<int64_t>& counts(Split split) const;  ///< how often each id occurs

  /// NaN without /val.
  double unigram_loss() const;

  struct Bytes {
    int64_t train = 0;
    int64_t val = 0;
  };

  /// Writes attributes and tokenizer and commits; returns the data's SHA-256.
  std::string finish(const std::string& source, const Tokenizer* tokenizer, std::optional<Bytes> bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace minillm
