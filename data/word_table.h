#pragma once
// WordTable: the tokenizer of the built-in corpus, a table of at most 64 words. Words it does not hold become `<unk>`.

#include "data/tokenizer.h"

#include <string>
#include <string_view>
#include <vector>

namespace minillm {

/// Ids 0 `<unk>`, 1 `<s>`, 2 `</s>`, then the words in the order given. A word is written with what separates it, as in
/// " cat" and ".\n"; a text is matched word by word, the longest first, and only where a word ends.
class WordTable final : public Tokenizer {
 public:
  explicit WordTable(const std::vector<std::string>& words);
  explicit WordTable(const std::string& serialized);

  static bool is_word_table(std::string_view serialized);

  TokenizerKind tokenizer_kind() const override { return TokenizerKind::words; }
  int32_t vocab_size() const override { return static_cast<int32_t>(words_.size()); }
  int32_t unk_id() const override { return 0; }
  int32_t bos_id() const override { return 1; }
  int32_t eos_id() const override { return 2; }

  using Tokenizer::encode;
  void encode(std::string_view bytes, std::vector<int32_t>& ids) const override;
  std::string_view bytes(int32_t id) const override;
  std::string piece(int32_t id) const override;
  float score(int32_t id) const override;
  PieceKind kind(int32_t id) const override;
  const std::string& serialized() const override { return serialized_; }

 private:
  /// The id of the longest word that `text` begins with; 0 when there is none.
  int32_t match(std::string_view text) const;

  std::vector<std::string> words_;  // by id; the first three are names
  std::string serialized_;
};

}  // namespace minillm
