// llama2.c's tokenizer.bin: the longest piece's bytes as int32, then for every id a float32 score, an int32 length, and
// the piece's bytes, its blanks as they are. Ids 0, 1, 2 are <unk>, <s>, </s>, then the 256 bytes as "<0x0A>".

#include "core/atomic_file.h"
#include "core/error.h"
#include "formats/llama2c.h"
#include "formats/sentencepiece_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace minillm {

namespace {

constexpr int32_t most_piece_bytes = 1 << 16;
constexpr size_t most_file_bytes = size_t{1} << 30;
constexpr int32_t first_byte = 3;

/// What llama2.c's tokenizer.py writes in the place of the names that end texts.
std::string name_in_file(const Piece& piece) {
  if (piece.kind == PieceKind::unused) {
    return "";
  }
  return piece.kind == PieceKind::control ? "\n" + piece.name + "\n" : marks_to_blanks(piece.name);
}

/// Takes numbers and bytes from the front of the file's bytes.
class Cursor {
 public:
  Cursor(std::string_view bytes, const std::string& path, int64_t pieces)
      : rest_(bytes), path_(path), pieces_(pieces) {}

  template <class T>
  T number() {
    T value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  std::string_view take(size_t count) {
    if (count > rest_.size()) {
      fail_input({.where = path_,
                  .what = "the file ends before the last piece",
                  .found = fmt::format("{} whole pieces", done_),
                  .expected = fmt::format("{}, the model's vocabulary", pieces_),
                  .hint = "it was cut, or is the tokenizer of another model"});
    }
    const std::string_view front = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return front;
  }

  void piece_done() { ++done_; }
  size_t left() const { return rest_.size(); }

 private:
  std::string_view rest_;
  const std::string& path_;
  int64_t pieces_;
  int64_t done_ = 0;
};

PieceKind kind_of(size_t id, const std::string& name) {
  if (id == 0) {
    return PieceKind::unknown;
  }
  if (id < static_cast<size_t>(first_byte)) {
    return PieceKind::control;
  }
  const size_t byte = id - static_cast<size_t>(first_byte);
  return byte < 256 && name == byte_piece_name(static_cast<unsigned>(byte)) ? PieceKind::byte : PieceKind::normal;
}

Piece read_piece(Cursor& cursor, size_t id, int32_t longest, const std::string& path) {
  const float score = cursor.number<float>();
  const int32_t length = cursor.number<int32_t>();
  if (length < 0 || length > longest || !std::isfinite(score)) {
    fail_input({.where = path,
                .what = fmt::format("piece {} cannot be right", id),
                .found = fmt::format("a length of {}, a score of {}", length, score),
                .expected = fmt::format("a length from 0 to {}, a finite score", longest),
                .hint = "it is damaged, or no tokenizer of llama2.c"});
  }
  std::string name(cursor.take(static_cast<size_t>(length)));
  cursor.piece_done();
  const PieceKind kind = kind_of(id, name);
  if (kind == PieceKind::control && name.size() > 2 && name.front() == '\n' && name.back() == '\n') {
    name = name.substr(1, name.size() - 2);
  }
  return {blanks_to_marks(name), score, kind};
}

}  // namespace

std::string read_llama2c_tokenizer(const std::string& path, int64_t vocab_size) {
  const std::string bytes = read_bytes(path, most_file_bytes);
  Cursor cursor(bytes, path, vocab_size);
  const int32_t longest = std::min(cursor.number<int32_t>(), most_piece_bytes);
  std::vector<Piece> pieces;
  for (int64_t id = 0; id < vocab_size; ++id) {
    pieces.push_back(read_piece(cursor, static_cast<size_t>(id), longest, path));
  }
  if (cursor.left() > 0) {
    fail_input({.where = path,
                .what = "the file goes on behind the last piece",
                .found = fmt::format("{} bytes more", cursor.left()),
                .expected = fmt::format("{} pieces, the model's vocabulary", vocab_size),
                .hint = "it is the tokenizer of another model"});
  }
  while (!pieces.empty() && pieces.back().name.empty()) {  // ids that stand for nothing
    pieces.pop_back();
  }
  if (!has_all_bytes(pieces)) {
    return "";
  }
  std::string model = make_sentencepiece_model(pieces);
  load_tokenizer(model, path);  // throws what is wrong with it
  return model;
}

void write_llama2c_tokenizer(const Tokenizer& tokenizer, int64_t vocab_size, const std::string& path) {
  const std::vector<Piece> pieces = pieces_of(tokenizer, vocab_size);
  int32_t longest = 0;
  for (const Piece& piece : pieces) {
    longest = std::max(longest, static_cast<int32_t>(name_in_file(piece).size()));
  }
  AtomicFile file(path);
  file.write(&longest, sizeof longest);
  for (const Piece& piece : pieces) {
    const std::string name = name_in_file(piece);
    const int32_t length = static_cast<int32_t>(name.size());
    file.write(&piece.score, sizeof piece.score);
    file.write(&length, sizeof length);
    file.write(name);
  }
  file.commit();
}

}  // namespace minillm
