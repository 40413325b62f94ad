#include "data/word_table.h"

#include "core/error.h"

#include <cctype>
#include <charconv>

namespace minillm {

namespace {

constexpr std::string_view word_table_magic = "minillm-words 1\n";

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

/// "<length> <bytes>\n" for each word, so that words may hold newlines.
std::vector<std::string> parse(std::string_view text) {
  std::vector<std::string> words;
  text.remove_prefix(word_table_magic.size());
  while (!text.empty()) {
    size_t length = 0;
    const auto number = std::from_chars(text.data(), text.data() + text.size(), length);
    const size_t digits = static_cast<size_t>(number.ptr - text.data());
    check(number.ec == std::errc() && text.size() >= digits + 2 && length <= text.size() - digits - 2 &&
              text[digits] == ' ' && text[digits + 1 + length] == '\n',
          "the word table is damaged at word {}", words.size());
    words.emplace_back(text.substr(digits + 1, length));
    text.remove_prefix(digits + 2 + length);
  }
  return words;
}

}  // namespace

WordTable::WordTable(const std::vector<std::string>& words)
    : words_({"<unk>", "<s>", "</s>"}), serialized_(word_table_magic) {
  for (const std::string& word : words) {
    check(!word.empty(), "a word table cannot hold an empty word");
    words_.push_back(word);
    serialized_ += fmt::format("{} {}\n", word.size(), word);
  }
}

WordTable::WordTable(const std::string& serialized) : WordTable(parse(serialized)) {}

bool WordTable::is_word_table(std::string_view serialized) {
  return serialized.substr(0, word_table_magic.size()) == word_table_magic;
}

int32_t WordTable::match(std::string_view text) const {
  size_t best_length = 0;
  int32_t best = 0;
  for (size_t id = 3; id < words_.size(); ++id) {
    const std::string& word = words_[id];
    const bool ends = text.size() <= word.size() || !is_letter(word.back()) || !is_letter(text[word.size()]);
    if (word.size() > best_length && ends && text.substr(0, word.size()) == word) {
      best_length = word.size();
      best = static_cast<int32_t>(id);
    }
  }
  return best;
}

void WordTable::encode(std::string_view bytes, std::vector<int32_t>& ids) const {
  bool in_unknown = false;
  while (!bytes.empty()) {
    const int32_t id = match(bytes);
    if (id == 0) {
      if (!in_unknown || bytes[0] == ' ') {
        ids.push_back(unk_id());
      }
      in_unknown = true;
      bytes.remove_prefix(1);
      continue;
    }
    ids.push_back(id);
    in_unknown = false;
    bytes.remove_prefix(words_[static_cast<size_t>(id)].size());
  }
}

std::string_view WordTable::bytes(int32_t id) const {
  check_id(id);
  return id < 3 ? std::string_view() : std::string_view(words_[static_cast<size_t>(id)]);
}

std::string WordTable::piece(int32_t id) const {
  check_id(id);
  return words_[static_cast<size_t>(id)];
}

float WordTable::score(int32_t id) const {
  check_id(id);
  return 0;
}

PieceKind WordTable::kind(int32_t id) const {
  check_id(id);
  if (id == 0) {
    return PieceKind::unknown;
  }
  return id < 3 ? PieceKind::control : PieceKind::normal;
}

}  // namespace minillm
