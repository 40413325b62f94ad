#include "formats/sentencepiece_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

namespace minillm {

namespace {

constexpr std::string_view mark = "\xe2\x96\x81";  // U+2581

// The wire format of protocol buffers: a key (number << 3 | type), then a varint, 4 bytes, or a length and bytes.

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    out += static_cast<char>((value & 0x7f) | 0x80);
  }
  out += static_cast<char>(value);
}

void put_number(std::string& out, unsigned field, int64_t value) {
  put_varint(out, uint64_t{field} << 3);
  put_varint(out, static_cast<uint64_t>(value));
}

void put_bytes(std::string& out, unsigned field, std::string_view bytes) {
  put_varint(out, uint64_t{field} << 3 | 2);
  put_varint(out, bytes.size());
  out += bytes;
}

void put_float(std::string& out, unsigned field, float value) {
  put_varint(out, uint64_t{field} << 3 | 5);
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) {
    out += static_cast<char>(bits >> shift & 0xff);
  }
}

/// SentencePiece's numbers of the kinds.
constexpr std::pair<int32_t, PieceKind> kinds[] = {
    {1, PieceKind::normal}, {2, PieceKind::unknown}, {3, PieceKind::control},
    {5, PieceKind::unused}, {6, PieceKind::byte},
};

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  while (!text.empty()) {
    const bool here = text.starts_with(from);
    result += here ? to : text.substr(0, 1);
    text.remove_prefix(here ? from.size() : 1);
  }
  return result;
}

}  // namespace

int32_t number_of(PieceKind kind) {
  const auto row =
      std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& pair) { return pair.second == kind; });
  return row->first;
}

PieceKind kind_of(int32_t number) {
  const auto row =
      std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& pair) { return pair.first == number; });
  return row == std::end(kinds) ? PieceKind::normal : row->second;
}

std::string byte_piece_name(unsigned byte) {
  return fmt::format("<0x{:02X}>", byte);
}

std::string blanks_to_marks(std::string_view text) {
  return replaced(text, " ", mark);
}

std::string marks_to_blanks(std::string_view name) {
  return replaced(name, mark, " ");
}

bool has_all_bytes(const std::vector<Piece>& pieces) {
  std::set<std::string_view> names;
  for (const Piece& piece : pieces) {
    if (piece.kind == PieceKind::byte) {
      names.insert(piece.name);
    }
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (names.count(byte_piece_name(byte)) == 0) {
      return false;
    }
  }
  return true;
}

std::vector<Piece> pieces_of(const Tokenizer& tokenizer, int64_t vocab_size) {
  std::vector<Piece> pieces;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    pieces.push_back({tokenizer.piece(id), tokenizer.score(id), tokenizer.kind(id)});
  }
  while (static_cast<int64_t>(pieces.size()) < vocab_size) {
    pieces.push_back({fmt::format("<unused_{}>", pieces.size()), 0, PieceKind::unused});
  }
  return pieces;
}

std::string make_sentencepiece_model(const std::vector<Piece>& pieces) {
  std::string model;
  int64_t unknown = -1;
  for (const Piece& piece : pieces) {
    std::string entry;
    put_bytes(entry, 1, piece.name);
    put_float(entry, 2, piece.score);
    put_number(entry, 3, number_of(piece.kind));
    unknown = piece.kind == PieceKind::unknown ? &piece - pieces.data() : unknown;
    put_bytes(model, 1, entry);
  }
  const auto id_of = [&](std::string_view name) {
    const auto found =
        std::find_if(pieces.begin(), pieces.end(), [&](const Piece& piece) { return piece.name == name; });
    return found == pieces.end() ? int64_t{-1} : found - pieces.begin();
  };
  std::string trainer;
  put_number(trainer, 3, 2);  // BPE
  put_number(trainer, 4, static_cast<int64_t>(pieces.size()));
  put_number(trainer, 35, 1);  // byte_fallback
  put_number(trainer, 40, unknown);
  put_number(trainer, 41, id_of("<s>"));
  put_number(trainer, 42, id_of("</s>"));
  put_number(trainer, 43, -1);  // pad_id
  put_bytes(model, 2, trainer);
  std::string normalizer;
  put_bytes(normalizer, 1, "identity");
  put_number(normalizer, 3, 0);  // add_dummy_prefix
  put_number(normalizer, 4, 0);  // remove_extra_whitespaces
  put_number(normalizer, 5, 1);  // escape_whitespaces
  put_bytes(model, 3, normalizer);
  return model;
}

}  // namespace minillm
