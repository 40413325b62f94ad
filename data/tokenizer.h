#pragma once
// Tokenizer: bytes to ids and back. The one that `prepare` trains is SentencePiece BPE (Kudo and Richardson 2018;
// Sennrich et al. 2016) with byte fallback, made byte-exact by a layer of ours.
//
// SentencePiece alone loses text: it maps U+2581 to a blank and invalid UTF-8 to U+FFFD, and a blank that it has no
// piece for becomes the bytes of U+2581. So we split the bytes at newline, NUL, U+2581, every byte that is not
// well-formed UTF-8 and, where the model has no piece for it, the blank; emit those as `<0xNN>` ids, and let
// SentencePiece encode only the spans between (no normalisation, no dummy prefix, blanks kept). Decoding joins the
// pieces' bytes. Hence decode(encode(x)) == x for any bytes x. Names of special tokens inside text ("</s>") are text
// like any other.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

/// How text becomes ids: by the built-in corpus's table of words, by SentencePiece, or as in data/byte_bpe.h.
enum class TokenizerKind : uint8_t { words, sentencepiece, byte_bpe };

enum class PieceKind : uint8_t { normal, unknown, control, byte, unused };

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual TokenizerKind tokenizer_kind() const = 0;
  virtual int32_t vocab_size() const = 0;
  virtual int32_t unk_id() const = 0;  ///< -1: none, every text has ids
  virtual int32_t bos_id() const = 0;  ///< `<s>`, stands before every document
  virtual int32_t eos_id() const = 0;  ///< `</s>`; byte-level BPE has `<|endoftext|>` for both

  /// Appends the ids of `bytes`; no `<s>` is added. Safe to call from several threads.
  virtual void encode(std::string_view bytes, std::vector<int32_t>& ids) const = 0;
  std::vector<int32_t> encode(std::string_view bytes) const;

  /// The last place where a text that goes on behind `front` may be cut, so that both parts together have the ids of
  /// the whole: behind a line end, for most. 0: `front` has none.
  virtual size_t cut(std::string_view front) const;

  /// The bytes an id stands for: nothing for control and unknown ids. A piece may be half a character:
  /// whoever prints them collects whole ones (generate/utf8_stream.h).
  virtual std::string_view bytes(int32_t id) const = 0;
  std::string decode(const std::vector<int32_t>& ids) const;

  virtual std::string piece(int32_t id) const = 0;  ///< the id's name: "<s>", "<0x0A>", U+2581 "the"
  virtual float score(int32_t id) const = 0;        ///< merges: -rank; else 0
  virtual PieceKind kind(int32_t id) const = 0;

  /// What load_tokenizer reads: for SentencePiece its model file, for byte-level BPE its tokenizer.json, which other
  /// tools open.
  virtual const std::string& serialized() const = 0;
  std::string sha256() const;  ///< of serialized()

 protected:
  /// Throws an Error unless 0 <= id < vocab_size().
  void check_id(int32_t id) const;
};

/// Reads what serialized() gave, any SentencePiece BPE model with byte pieces, or a tokenizer.json of byte-level BPE.
/// `name` appears in errors.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& serialized, const std::string& name);

struct TokenizerTraining {
  std::unique_ptr<Tokenizer> tokenizer;
  int64_t characters = 0;       ///< distinct ones in the text
  int64_t characters_kept = 0;  ///< the others are left to byte pieces: the vocabulary has no room for them
};

/// Trains SentencePiece BPE on `text` (as large as memory for it can be: about 10 bytes a byte of text). Ids: 0
/// `<unk>`, 1 `<s>`, 2 `</s>`, 3..258 bytes, then merges, then characters. Where they do not all fit, nine tenths of
/// the room behind the bytes go to characters, the most frequent first (equal counts: the smaller code point); more
/// where the text has too few merges for the rest. The same text gives the same model, byte for byte: one thread, and
/// SentencePiece breaks ties by length and then by the piece itself. Throws an input Error when the text is too small
/// for the size, with the largest that it can give; every smaller one down to smallest_vocabulary works too.
TokenizerTraining train_tokenizer(std::string_view text, int64_t vocab_size);

/// The smallest vocabulary train_tokenizer accepts: special ids, bytes, one piece.
inline constexpr int64_t smallest_vocabulary = 3 + 256 + 1;

}  // namespace minillm
