#pragma once
// A SentencePiece model made of its pieces: other formats carry the vocabulary and not the model it came from.

#include "data/tokenizer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace minillm {

struct Piece {
  std::string name;  ///< as SentencePiece writes it: blanks are U+2581, bytes "<0x0A>"
  float score = 0;
  PieceKind kind = PieceKind::normal;
};

/// SentencePiece's number of a kind of piece, which GGUF has taken over; an unknown number is a normal piece's.
int32_t number_of(PieceKind kind);
PieceKind kind_of(int32_t number);

/// The serialized BPE model of these pieces, by id, with byte fallback, no normalisation and no dummy prefix: what
/// load_tokenizer reads. It encodes as the model that the pieces were taken from does.
std::string make_sentencepiece_model(const std::vector<Piece>& pieces);

/// The pieces of a tokenizer whose ids from its size up to `vocab_size` stand for nothing.
std::vector<Piece> pieces_of(const Tokenizer& tokenizer, int64_t vocab_size);

/// Whether every byte has a piece, without which not every text can be encoded.
bool has_all_bytes(const std::vector<Piece>& pieces);

/// "<0x0A>"
std::string byte_piece_name(unsigned byte);

std::string blanks_to_marks(std::string_view text);  ///< ' ' becomes U+2581
std::string marks_to_blanks(std::string_view name);

}  // namespace minillm
