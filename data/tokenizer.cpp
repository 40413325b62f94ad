#include "data/tokenizer.h"

#include "core/error.h"
#include "core/utf8.h"
#include "data/byte_bpe.h"
#include "data/sha256.h"
#include "data/user_block.h"
#include "data/word_table.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace minillm {

namespace {

constexpr std::string_view blank_mark = "\xe2\x96\x81";     // U+2581, SentencePiece's blank
constexpr std::string_view reserved_mark = "\xe2\x96\x85";  // U+2585, SentencePiece drops sentences that hold it
constexpr size_t span_bytes = 4096;  // encoding costs more than linear time in the length of a span

/// Bytes SentencePiece may see: how many from the front of `text` belong to a span; 0 when a byte id must stand first.
/// Blanks belong to spans where the model has a piece for them.
size_t spannable(std::string_view text, bool blanks) {
  size_t length = 0;
  while (length < text.size()) {
    const std::string_view rest = text.substr(length);
    const size_t character = utf8_character(rest);
    if (character == 0 || rest[0] == '\n' || rest[0] == '\0' || (rest[0] == ' ' && !blanks) ||
        rest.substr(0, blank_mark.size()) == blank_mark) {
      break;
    }
    length += character;
  }
  return length;
}

std::string byte_piece(unsigned byte) {
  return fmt::format("<0x{:02X}>", byte);
}

/// The bytes of a normal piece: its blanks are written U+2581.
std::string unescape_blanks(std::string_view piece) {
  std::string bytes;
  while (!piece.empty()) {
    const bool blank = piece.substr(0, blank_mark.size()) == blank_mark;
    bytes += blank ? ' ' : piece[0];
    piece.remove_prefix(blank ? blank_mark.size() : 1);
  }
  return bytes;
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string serialized, const std::string& name);

  TokenizerKind tokenizer_kind() const override { return TokenizerKind::sentencepiece; }
  int32_t vocab_size() const override { return static_cast<int32_t>(bytes_.size()); }
  int32_t unk_id() const override { return processor_.unk_id(); }
  int32_t bos_id() const override { return processor_.bos_id(); }
  int32_t eos_id() const override { return processor_.eos_id(); }

  void encode(std::string_view bytes, std::vector<int32_t>& ids) const override;

  std::string_view bytes(int32_t id) const override {
    check_id(id);
    return bytes_[static_cast<size_t>(id)];
  }
  std::string piece(int32_t id) const override {
    check_id(id);
    return processor_.IdToPiece(id);
  }
  float score(int32_t id) const override {
    check_id(id);
    return processor_.GetScore(id);
  }
  PieceKind kind(int32_t id) const override;
  const std::string& serialized() const override { return serialized_; }

 private:
  void encode_span(std::string_view span, std::vector<int32_t>& ids) const;

  sentencepiece::SentencePieceProcessor processor_;
  std::string serialized_;
  std::vector<std::string> bytes_;     // of each id
  std::array<int32_t, 256> byte_ids_;  // of each byte
  bool has_blank_ = false;             // a piece for the single blank
};

SentencePieceTokenizer::SentencePieceTokenizer(std::string serialized, const std::string& name)
    : serialized_(std::move(serialized)), byte_ids_{} {
  const auto status = processor_.LoadFromSerializedProto(serialized_);
  if (serialized_.empty() || !status.ok()) {
    const std::string kind = guess_file_kind(serialized_.substr(0, UserBlock::size), serialized_.size());
    fail_input({.where = name,
                .what = "is not a SentencePiece model",
                .found = serialized_.empty() ? "an empty file" : kind,
                .expected = "a .model file of SentencePiece, or a data file of minillm prepare"});
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    const int id = processor_.PieceToId(byte_piece(byte));
    if (!processor_.IsByte(id)) {
      fail_input(
          {.where = name,
           .what = fmt::format("the tokenizer has no piece {}, so not every text can be encoded", byte_piece(byte)),
           .hint = "train it with byte_fallback"});
    }
    byte_ids_[byte] = id;
  }
  if (processor_.bos_id() < 0 || processor_.eos_id() < 0) {
    fail_input({.where = name, .what = "the tokenizer needs the control pieces <s> and </s>"});
  }
  bytes_.resize(static_cast<size_t>(processor_.GetPieceSize()));
  for (int id = 0; id < processor_.GetPieceSize(); ++id) {
    if (kind(id) == PieceKind::normal) {
      bytes_[static_cast<size_t>(id)] = unescape_blanks(processor_.IdToPiece(id));
    }
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    bytes_[static_cast<size_t>(byte_ids_[byte])] = std::string(1, static_cast<char>(byte));
  }
  has_blank_ = kind(processor_.PieceToId(blank_mark)) == PieceKind::normal;
}

PieceKind SentencePieceTokenizer::kind(int32_t id) const {
  check_id(id);
  if (processor_.IsUnknown(id)) {
    return PieceKind::unknown;
  }
  if (processor_.IsControl(id)) {
    return PieceKind::control;
  }
  if (processor_.IsByte(id)) {
    return PieceKind::byte;
  }
  return processor_.IsUnused(id) ? PieceKind::unused : PieceKind::normal;
}

void SentencePieceTokenizer::encode_span(std::string_view span, std::vector<int32_t>& ids) const {
  std::vector<int> span_ids;
  while (!span.empty()) {
    // Cut before a blank nothing changes, for no piece reaches across one; inside a longer word the ids are still
    // exact.
    const size_t length = utf8_cut(span, span_bytes);
    const auto status = processor_.Encode({span.data(), length}, &span_ids);
    check(status.ok(), "SentencePiece cannot encode: {}", status.ToString());
    ids.insert(ids.end(), span_ids.begin(), span_ids.end());
    span.remove_prefix(length);
  }
}

void SentencePieceTokenizer::encode(std::string_view bytes, std::vector<int32_t>& ids) const {
  while (!bytes.empty()) {
    const size_t span = spannable(bytes, has_blank_);
    encode_span(bytes.substr(0, span), ids);
    bytes.remove_prefix(span);
    if (bytes.empty()) {
      break;
    }
    const size_t as_bytes = bytes.substr(0, blank_mark.size()) == blank_mark ? blank_mark.size() : 1;
    for (size_t i = 0; i < as_bytes; ++i) {
      ids.push_back(byte_ids_[static_cast<unsigned char>(bytes[i])]);
    }
    bytes.remove_prefix(as_bytes);
  }
}

/// The characters kept for training, from their counts: the most frequent, at most `room`.
std::unordered_set<std::string> choose_characters(const std::map<std::string, int64_t>& counts, size_t room) {
  std::vector<std::pair<std::string, int64_t>> order(counts.begin(), counts.end());
  // The map is sorted by bytes, which for UTF-8 is by code point; a stable sort keeps that among equals.
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::unordered_set<std::string> kept;
  for (size_t i = 0; i < std::min(room, order.size()); ++i) {
    kept.insert(order[i].first);
  }
  return kept;
}

/// Characters that may be part of a piece; the others end a training sentence.
bool is_learnable(std::string_view character) {
  return !character.empty() && character != "\n" && character != "\t" && character[0] != '\0' &&
         character != blank_mark && character != reserved_mark;
}

/// The name of a special piece stands at the front of `text`. The trainer would drop it as a mark of its own.
bool starts_with_special_name(std::string_view text) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  const bool byte =
      text.size() >= 6 && text.substr(0, 3) == "<0x" && is_hex(text[3]) && is_hex(text[4]) && text[5] == '>';
  return byte || text.substr(0, 3) == "<s>" || text.substr(0, 4) == "</s>" || text.substr(0, 5) == "<unk>";
}

std::map<std::string, int64_t> count_characters(std::string_view text) {
  std::unordered_map<std::string, int64_t> counts;
  while (!text.empty()) {
    const std::string_view character = text.substr(0, utf8_character(text));
    if (is_learnable(character)) {
      ++counts[std::string(character)];
    }
    text.remove_prefix(std::max<size_t>(character.size(), 1));
  }
  return std::map<std::string, int64_t>(counts.begin(), counts.end());
}

/// Walks the training text sentence by sentence: runs of kept characters, at most span_bytes long, cut inside the names
/// of special pieces. SentencePiece skips longer ones, and what looks like a mark of its own, without an error.
class Sentences final : public sentencepiece::SentenceIterator {
 public:
  Sentences(std::string_view text, const std::unordered_set<std::string>& kept) : rest_(text), kept_(kept) {
    advance();
  }

  bool done() const override { return sentence_.empty(); }
  void Next() override { advance(); }
  const std::string& value() const override { return sentence_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  void advance() {
    sentence_.clear();
    while (!rest_.empty()) {
      const size_t run = run_length(rest_.substr(0, 2 * span_bytes));
      if (run > 0) {
        sentence_ = rest_.substr(0, utf8_cut(rest_.substr(0, run), span_bytes));
        rest_.remove_prefix(sentence_.size());
        return;
      }
      rest_.remove_prefix(std::max<size_t>(utf8_character(rest_), 1));
    }
  }

  size_t run_length(std::string_view text) const {
    size_t length = 0;
    while (length < text.size()) {
      const std::string_view character = text.substr(length, utf8_character(text.substr(length)));
      if (!is_learnable(character) || kept_.count(std::string(character)) == 0) {
        break;
      }
      const bool cut_behind = starts_with_special_name(text.substr(length));
      length += character.size();
      if (cut_behind) {
        break;
      }
    }
    return length;
  }

  std::string_view rest_;
  const std::unordered_set<std::string>& kept_;
  std::string sentence_;
};

std::string run_trainer(std::string_view text, int64_t vocab_size, const std::unordered_set<std::string>& kept) {
  const std::unordered_map<std::string, std::string> options = {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(vocab_size)},
      {"byte_fallback", "true"},
      {"character_coverage", "1.0"},
      {"normalization_rule_name", "identity"},
      {"add_dummy_prefix", "false"},
      {"remove_extra_whitespaces", "false"},
      {"split_digits", "true"},
      {"allow_whitespace_only_pieces", "true"},
      {"hard_vocab_limit", "false"},  // a vocabulary that comes out smaller is our error, with its size
      {"unk_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"pad_id", "-1"},
      {"num_threads", "1"},
      {"minloglevel", "3"},
  };
  Sentences sentences(text, kept);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, &sentences, &model);
  if (!status.ok()) {
    fail_work({.where = "tokenizer", .what = "SentencePiece cannot train: " + status.ToString()});
  }
  return model;
}

/// Trains on the `most` most frequent characters; the others are left to byte pieces.
TokenizerTraining train_on_characters(std::string_view text, int64_t vocab_size,
                                      const std::map<std::string, int64_t>& counts, size_t most) {
  const std::unordered_set<std::string> kept = choose_characters(counts, most);
  // The trainer takes a turn for every piece asked for, also without merges left; each merge shortens the text.
  vocab_size = std::min(vocab_size, 259 + static_cast<int64_t>(kept.size() + text.size()));
  TokenizerTraining result;
  result.characters = static_cast<int64_t>(counts.size());
  result.characters_kept = static_cast<int64_t>(kept.size());
  result.tokenizer = std::make_unique<SentencePieceTokenizer>(run_trainer(text, vocab_size, kept), "tokenizer");
  return result;
}

}  // namespace

std::vector<int32_t> Tokenizer::encode(std::string_view bytes) const {
  std::vector<int32_t> ids;
  encode(bytes, ids);
  return ids;
}

size_t Tokenizer::cut(std::string_view front) const {
  return front.rfind('\n') + 1;  // npos + 1 is 0
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids) const {
  std::string text;
  for (int32_t id : ids) {
    text += bytes(id);
  }
  return text;
}

std::string Tokenizer::sha256() const {
  return sha256_hex(serialized());
}

void Tokenizer::check_id(int32_t id) const {
  check(id >= 0 && id < vocab_size(), "the token id {} is outside the vocabulary of {}", id, vocab_size());
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& serialized, const std::string& name) {
  if (WordTable::is_word_table(serialized)) {
    return std::make_unique<WordTable>(serialized);
  }
  if (is_byte_bpe(serialized)) {
    return load_byte_bpe(serialized, name);
  }
  return std::make_unique<SentencePieceTokenizer>(serialized, name);
}

TokenizerTraining train_tokenizer(std::string_view text, int64_t vocab_size) {
  const Problem too_small{.where = "vocabulary",
                          .what = "too small: special tokens and bytes need 259 ids",
                          .found = std::to_string(vocab_size),
                          .expected = fmt::format("at least {}", smallest_vocabulary)};
  if (vocab_size < smallest_vocabulary) {
    fail_input(too_small);
  }
  if (vocab_size > INT32_MAX) {
    fail_input({.where = "vocabulary", .what = "too large", .found = std::to_string(vocab_size)});
  }
  const std::map<std::string, int64_t> counts = count_characters(text);
  if (counts.empty()) {
    fail_input({.where = "vocabulary", .what = "the text holds no character a tokenizer could learn"});
  }
  const size_t room = static_cast<size_t>(vocab_size - 259);
  const size_t most = counts.size() <= room ? counts.size() : std::max<size_t>(1, room * 9 / 10);
  TokenizerTraining result = train_on_characters(text, vocab_size, counts, most);
  int64_t reached = result.tokenizer->vocab_size();
  // Without merges for the room that was left for them it goes to characters. All characters need more than the room
  // here, so that fills it in the end.
  while (reached < vocab_size && result.characters_kept < result.characters) {
    const size_t more = static_cast<size_t>(result.characters_kept + vocab_size - reached);
    result = train_on_characters(text, vocab_size, counts, more);
    reached = result.tokenizer->vocab_size();
  }
  if (reached != vocab_size) {
    fail_input({.where = "vocabulary",
                .what = fmt::format("the text is too small for a vocabulary of {}", vocab_size),
                .found = fmt::format("{} bytes of training text", text.size()),
                .expected = fmt::format("a vocabulary of at most {}", reached),
                .hint = fmt::format("use --vocab {} or more text", reached)});
  }
  return result;
}

}  // namespace minillm
