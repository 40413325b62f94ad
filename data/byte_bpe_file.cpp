#include "data/byte_bpe_file.h"

#include "core/error.h"
#include "core/text.h"
#include "core/utf8.h"
#include "data/byte_bpe.h"
#include "data/file_descriptor.h"
#include "data/strict_json.h"
#include "data/word_pattern.h"

#include <nlohmann/json.hpp>

#include <array>
#include <sstream>
#include <unordered_map>
#include <utility>

namespace minillm {

namespace {

using Json = nlohmann::json;

constexpr int64_t most_tokens = 1 << 24;  // a hundred times the largest vocabulary known

/// The character that stands for a byte, in UTF-8.
std::array<std::string, 256> characters_of_bytes() {
  std::array<std::string, 256> characters;
  int code = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool visible = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const int character = visible ? byte : code++;
    std::string& text = characters[static_cast<size_t>(byte)];
    if (character < 0x80) {
      text = static_cast<char>(character);
    } else {  // two bytes are enough up to U+07FF
      text = {static_cast<char>(0xc0 | (character >> 6)), static_cast<char>(0x80 | (character & 0x3f))};
    }
  }
  return characters;
}

/// The bytes that a token's name stands for; false where a character stands for none.
bool bytes_of_name(std::string_view name, std::string& bytes) {
  static const std::unordered_map<std::string, char> table = [] {
    std::unordered_map<std::string, char> result;
    const std::array<std::string, 256> characters = characters_of_bytes();
    for (size_t byte = 0; byte < 256; ++byte) {
      result.emplace(characters[byte], static_cast<char>(byte));
    }
    return result;
  }();
  bytes.clear();
  while (!name.empty()) {
    const size_t length = utf8_character(name);
    const auto found = table.find(std::string(name.substr(0, length)));
    if (length == 0 || found == table.end()) {
      return false;
    }
    bytes += found->second;
    name.remove_prefix(length);
  }
  return true;
}

/// Reads one file; messages name it and the key.
class Reader {
 public:
  Reader(std::string_view text, const std::string& name)
      : name_(name), root_(parse_strictly(text, name, {.subject = "", .most_depth = 16, .deeper_than = "it may be"})) {
    if (!root_.is_object() || !root_.contains("model") || !root_["model"].is_object()) {
      fail("model", "is not there: this is no tokenizer.json");
    }
  }

  ByteBpeFile read() {
    must_be(root_["model"], "type", "model.type", {"BPE", nullptr});
    must_be(root_, "normalizer", "normalizer", {nullptr});
    must_be(root_["model"], "dropout", "model.dropout", {nullptr});
    must_be(root_["model"], "byte_fallback", "model.byte_fallback", {false, nullptr});
    read_tokens();
    read_added_tokens();
    read_merges();
    read_pattern();
    file_.ignore_merges = root_["model"].value("ignore_merges", false);
    check_bytes();
    find_ends();
    return std::move(file_);
  }

 private:
  [[noreturn]] void fail(const std::string& key, const std::string& what, const std::string& found = "",
                         const std::string& expected = "") const {
    fail_input({.where = name_ + ": " + key, .what = what, .found = found, .expected = expected});
  }

  static std::string shown(const Json& value) {
    return printable(value.dump(-1, ' ', true, Json::error_handler_t::replace), 60);
  }

  void must_be(const Json& object, const char* key, const std::string& where, const std::vector<Json>& values) const {
    const Json found = object.contains(key) ? object[key] : Json(nullptr);
    std::vector<std::string> expected;
    for (const Json& value : values) {
      if (found == value) {
        return;
      }
      expected.push_back(value.dump());
    }
    fail(where, "is not what byte-level BPE without normalisation has", shown(found), join(expected, " or "));
  }

  /// An id of the file as a number in range.
  int32_t id_of(const Json& value, const std::string& where) const {
    if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() >= most_tokens) {
      fail(where, "is no token's id", shown(value), fmt::format("a whole number from 0 to {}", most_tokens - 1));
    }
    return value.get<int32_t>();
  }

  ByteBpeToken& place(int32_t id, const std::string& where) {
    const auto index = static_cast<size_t>(id);
    if (index >= file_.tokens.size()) {
      file_.tokens.resize(index + 1);
    }
    if (!file_.tokens[index].bytes.empty()) {
      fail(where, "has the id of another token", std::to_string(id));
    }
    return file_.tokens[index];
  }

  void read_tokens() {
    const Json vocab = root_["model"].value("vocab", Json());
    if (!vocab.is_object()) {
      fail("model.vocab", "is no table of tokens", shown(vocab));
    }
    std::vector<std::string> special;  // names that are no bytes stand among added tokens too
    for (const auto& [name, value] : vocab.items()) {
      const std::string where = "model.vocab: " + printable(name);
      std::string bytes;
      if (!bytes_of_name(name, bytes) || bytes.empty()) {
        if (!is_added(name)) {
          fail(where, "is a token of characters that stand for no bytes");
        }
        continue;
      }
      const int32_t id = id_of(value, where);
      place(id, where).bytes = bytes;
      ids_.emplace(name, id);
    }
  }

  bool is_added(const std::string& name) const {
    for (const Json& token : root_.value("added_tokens", Json::array())) {
      if (token.is_object() && token.value("content", Json()) == name) {
        return true;
      }
    }
    return false;
  }

  void read_added_tokens() {
    for (const Json& token : root_.value("added_tokens", Json::array())) {
      if (!token.is_object() || !token.contains("content") || !token["content"].is_string() || !token.contains("id")) {
        fail("added_tokens", "one of them has no content or no id", shown(token));
      }
      const auto content = token["content"].get<std::string>();
      const std::string where = "added_tokens: " + printable(content);
      const int32_t id = id_of(token["id"], where);
      const auto known = ids_.find(content);
      if (known != ids_.end() && known->second == id) {
        file_.tokens[static_cast<size_t>(id)] = {content, true};
        continue;
      }
      place(id, where) = {content, true};
      ids_.emplace(content, id);
    }
  }

  void read_merges() {
    const Json merges = root_["model"].value("merges", Json());
    if (!merges.is_array()) {
      fail("model.merges", "is no list of merges", shown(merges));
    }
    for (size_t i = 0; i < merges.size(); ++i) {
      const std::string where = fmt::format("model.merges[{}]", i);
      const auto [left, right] = names_of_merge(merges[i], where);
      const auto token = [&](const std::string& name) {
        const auto found = ids_.find(name);
        if (found == ids_.end()) {
          fail(where, "joins or makes a token that model.vocab does not have", printable(name));
        }
        return found->second;
      };
      file_.merges.push_back({token(left), token(right), token(left + right)});
    }
  }

  /// Older files write "a b", newer ones ["a", "b"].
  std::pair<std::string, std::string> names_of_merge(const Json& merge, const std::string& where) const {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      return {merge[0].get<std::string>(), merge[1].get<std::string>()};
    }
    const std::string text = merge.is_string() ? merge.get<std::string>() : "";
    const size_t blank = text.find(' ');
    if (blank == std::string::npos || text.find(' ', blank + 1) != std::string::npos) {
      fail(where, "is no pair of tokens", shown(merge), R"("a b" or ["a", "b"])");
    }
    return {text.substr(0, blank), text.substr(blank + 1)};
  }

  /// {"type": "ByteLevel"}, which has GPT-2's pattern, or a Sequence of one Split and a ByteLevel without.
  void read_pattern() {
    const Json pre = root_.value("pre_tokenizer", Json());
    const auto is_type = [](const Json& part, const char* type) {
      return part.is_object() && part.value("type", Json()) == type;
    };
    Json bytes = pre;
    if (is_type(pre, "Sequence") && pre.value("pretokenizers", Json()).size() == 2) {
      const Json split = pre["pretokenizers"][0];
      bytes = pre["pretokenizers"][1];
      const Json pattern = split.is_object() ? split.value("pattern", Json()) : Json();
      if (!is_type(split, "Split") || !pattern.is_object() || !pattern.value("Regex", Json()).is_string()) {
        fail("pre_tokenizer.pretokenizers[0]", "is no Split by a regular expression", shown(split));
      }
      must_be(split, "behavior", "pre_tokenizer.pretokenizers[0].behavior", {"Isolated"});
      must_be(split, "invert", "pre_tokenizer.pretokenizers[0].invert", {false, nullptr});
      must_be(bytes, "use_regex", "pre_tokenizer.pretokenizers[1].use_regex", {false});
      file_.pattern = pattern["Regex"].get<std::string>();
    } else {
      must_be(bytes.is_object() ? bytes : Json::object(), "use_regex", "pre_tokenizer.use_regex", {true, nullptr});
      file_.pattern = gpt2_pattern;
    }
    if (!is_type(bytes, "ByteLevel")) {
      fail("pre_tokenizer", "is not that of byte-level BPE", shown(bytes), "ByteLevel");
    }
    must_be(bytes, "add_prefix_space", "pre_tokenizer.add_prefix_space", {false});
  }

  void check_bytes() const {
    const std::array<std::string, 256> characters = characters_of_bytes();
    for (size_t byte = 0; byte < 256; ++byte) {
      if (ids_.find(characters[byte]) == ids_.end()) {
        fail("model.vocab", fmt::format("has no token for byte 0x{:02x}, so not every text has ids", byte));
      }
    }
  }

  void find_ends() {
    const auto id = [&](const char* name) {
      const auto found = ids_.find(name);
      return found != ids_.end() && file_.tokens[static_cast<size_t>(found->second)].special ? found->second : -1;
    };
    const int32_t both = id("<|endoftext|>");
    file_.bos = both;
    file_.eos = both;
    for (const auto& [name, end] :
         {std::pair("<s>", &file_.bos), std::pair("</s>", &file_.eos), std::pair("<|begin_of_text|>", &file_.bos),
          std::pair("<|end_of_text|>", &file_.eos)}) {
      *end = *end < 0 ? id(name) : *end;
    }
    if (file_.bos < 0 || file_.eos < 0) {
      fail("added_tokens", "has no token for the beginning or the end of a text", "",
           "<|endoftext|>, or <s> and </s>, or <|begin_of_text|> and <|end_of_text|>");
    }
  }

  const std::string& name_;
  Json root_;
  ByteBpeFile file_;
  std::unordered_map<std::string, int32_t> ids_;  // by the name in the file
};

constexpr size_t most_vocab_bytes = size_t{1} << 28;

}  // namespace

ByteBpeFile parse_byte_bpe(std::string_view text, const std::string& name) {
  return Reader(text, name).read();
}

std::string tokenizer_json_of(const std::string& vocab_path, const std::string& merges_path) {
  Json vocab = parse_strictly(read_bytes(vocab_path, most_vocab_bytes), vocab_path,
                              {.subject = "", .most_depth = 1, .deeper_than = "a vocab.json is"});
  Json added = Json::array();
  constexpr const char* end = "<|endoftext|>";
  if (vocab.is_object() && vocab.contains(end)) {
    added.push_back({{"id", vocab[end]}, {"content", end}, {"special", true}});
  }
  Json merges = Json::array();
  std::istringstream lines(read_bytes(merges_path, most_vocab_bytes));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') {
      line.pop_back();
    }
    if (!line.empty() && !line.starts_with("#version")) {
      merges.push_back(line);
    }
  }
  const Json root = {{"version", "1.0"},
                     {"added_tokens", std::move(added)},
                     {"normalizer", nullptr},
                     {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
                     {"decoder", {{"type", "ByteLevel"}}},
                     {"model", {{"type", "BPE"}, {"vocab", std::move(vocab)}, {"merges", std::move(merges)}}}};
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace minillm
