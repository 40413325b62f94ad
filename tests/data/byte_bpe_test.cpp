// Byte-level BPE on a small table made here: what is joined, in which order, what cuts words, and which files are
// refused. That GPT-2's own table gives GPT-2's ids is compared with another program in tests/e2e/clients_slow_test.py.

#include "data/byte_bpe.h"

#include "core/rng.h"
#include "core/utf8.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

using namespace minillm;
using namespace minillm::test;

namespace {

using BpeJson = nlohmann::json;

/// The character that stands for a byte, by the rule of the original program.
std::string seen(int byte) {
  std::vector<int> plain;
  for (int b = 0; b < 256; ++b) {
    if ((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255)) {
      plain.push_back(b);
    }
  }
  int code = byte;
  if (std::find(plain.begin(), plain.end(), byte) == plain.end()) {
    code = 256;
    for (int b = 0; b < byte; ++b) {
      code += std::find(plain.begin(), plain.end(), b) == plain.end() ? 1 : 0;
    }
  }
  std::string text;
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else {
    text += static_cast<char>(0xc0 + code / 64);
    text += static_cast<char>(0x80 + code % 64);
  }
  return text;
}

/// Bytes have their own number as id; then what each merge makes; the end of texts last.
BpeJson table(const std::vector<std::pair<std::string, std::string>>& merges) {
  BpeJson vocab = BpeJson::object();
  for (int byte = 0; byte < 256; ++byte) {
    vocab[seen(byte)] = byte;
  }
  BpeJson list = BpeJson::array();
  int next = 256;
  for (const auto& [left, right] : merges) {
    vocab[left + right] = vocab.contains(left + right) ? vocab[left + right] : BpeJson(next++);
    list.push_back(left + " " + right);
  }
  const BpeJson end = {{"id", next}, {"content", "<|endoftext|>"}};
  return {{"added_tokens", BpeJson::array({end})},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", list}}}};
}

const std::vector<std::pair<std::string, std::string>> some_merges = {{"l", "o"},  {"h", "e"},        {"l", "lo"},
                                                                      {"he", "l"}, {"\xc4\xa0", "w"}, {"e", "l"}};

std::vector<int32_t> ids_of(const BpeJson& json, std::string_view text) {
  return load_byte_bpe(json.dump(), "t.json")->encode(text);
}

std::string refusal(const BpeJson& json) {
  return message_of([&] { load_byte_bpe(json.dump(), "t.json"); });
}

}  // namespace

TEST_CASE("neighbours are joined in the order of the list, not of the text") {
  const BpeJson json = table(some_merges);
  CHECK(ids_of(json, "hello") == std::vector<int32_t>{257, 258});  // "lo" first, then "he", then "l" + "lo"
  CHECK(ids_of(json, "hel") == std::vector<int32_t>{259});
  CHECK(ids_of(json, "el") == std::vector<int32_t>{261});
  CHECK(ids_of(json, "lololo") == std::vector<int32_t>{256, 256, 256});
  CHECK(ids_of(json, " w w") == std::vector<int32_t>{260, 260});
  CHECK(ids_of(json, "").empty());
}

TEST_CASE("of equal pairs the leftmost is joined") {
  const BpeJson json = table({{"a", "a"}});
  CHECK(ids_of(json, "aaaaa") == std::vector<int32_t>{256, 256, 'a'});
}

TEST_CASE("nothing is joined across words: contractions, numbers, signs and the last blank in front of a word") {
  const BpeJson json = table({{"'", "s"}, {"s", "'"}, {"a", "1"}, {"\xc4\xa0", "\xc4\xa0"}, {"\xc4\xa0", "b"}});
  CHECK(ids_of(json, "s's") == std::vector<int32_t>{'s', 256});
  CHECK(ids_of(json, "a1") == std::vector<int32_t>{'a', '1'});
  CHECK(ids_of(json, "a   b") == std::vector<int32_t>{'a', 259, 260});
  CHECK(ids_of(json, "a  ") == std::vector<int32_t>{'a', 259});
  // U+180E is no blank since Unicode 6.3: it belongs to the sign behind it.
  CHECK(ids_of(json, "\xe1\xa0\x8e!") == std::vector<int32_t>{0xe1, 0xa0, 0x8e, '!'});
}

TEST_CASE("any bytes come back, and names of special tokens are text") {
  const std::unique_ptr<Tokenizer> tokenizer = load_byte_bpe(table(some_merges).dump(), "t.json");
  RandomStream random(random_key(1, "bytes"));
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random.below(40), '\0');
    for (char& c : bytes) {
      const char pool[] = {'h', 'e', 'l', 'o', ' ', '\n', '\0', '\xe5', '\xa5', '\xbd', '\xff'};
      c = i % 2 == 0 ? static_cast<char>(random.below(256)) : pool[random.below(std::size(pool))];
    }
    CAPTURE(i);
    CHECK(tokenizer->decode(tokenizer->encode(bytes)) == bytes);
  }
  const std::string special = "<|endoftext|>";
  CHECK(tokenizer->decode(tokenizer->encode(special)) == special);
  CHECK(tokenizer->encode(special).size() == special.size());
  CHECK(tokenizer->bos_id() == 262);
  CHECK(tokenizer->eos_id() == 262);
  CHECK(tokenizer->unk_id() == -1);
  CHECK(tokenizer->bytes(262) == "");
  CHECK(tokenizer->kind(262) == PieceKind::control);
  CHECK(tokenizer->vocab_size() == 263);
}

TEST_CASE("a long word costs no square of its length") {
  const std::unique_ptr<Tokenizer> tokenizer = load_byte_bpe(table({{"a", "a"}, {"aa", "aa"}}).dump(), "t.json");
  const std::string word(1 << 20, 'a');
  CHECK(tokenizer->encode(word) == std::vector<int32_t>(1 << 18, 257));
}

TEST_CASE("parts that are cut where the tokenizer says have the ids of the whole") {
  BpeJson gpt2 =
      table({{"\xc4\x8a", "\xc4\x8a"}, {"\xc4\xa0", "\xc4\x8a"}, {"l", "o"}, {"\xc4\xa0", "lo"}, {".", "\xc4\x8a"}});
  BpeJson other = gpt2;
  other["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"},
         {"pattern",
          {{"Regex", R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}}},
         {"behavior", "Isolated"}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  RandomStream random(random_key(1, "cuts"));
  int cuts = 0;
  for (const BpeJson& json : {gpt2, other}) {
    const std::unique_ptr<Tokenizer> tokenizer = load_byte_bpe(json.dump(), "t.json");
    for (int i = 0; i < 3000; ++i) {
      std::string text(random.below(30) + 5, '\0');
      const char pool[] = {'l', 'o', ' ', '\n', '.', '1', '\xe3', '\x80'};
      for (char& c : text) {
        c = pool[random.below(std::size(pool))];
      }
      const size_t front = random.below(text.size());
      const size_t cut = tokenizer->cut(text.substr(0, front));
      cuts += cut > 0 ? 1 : 0;
      REQUIRE(cut <= front);
      std::vector<int32_t> parts = tokenizer->encode(text.substr(0, cut));
      tokenizer->encode(text.substr(cut), parts);
      CAPTURE(text);
      CAPTURE(cut);
      REQUIRE(parts == tokenizer->encode(text));
    }
  }
  CHECK(cuts > 500);
}

TEST_CASE("another pattern, and words that are tokens by themselves") {
  BpeJson json = table(some_merges);
  json["pre_tokenizer"] = {{"type", "Sequence"},
                           {"pretokenizers",
                            {{{"type", "Split"}, {"pattern", {{"Regex", "l+|[^l]+"}}}, {"behavior", "Isolated"}},
                             {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  CHECK(ids_of(json, "hello") == std::vector<int32_t>{257, 'l', 'l', 'o'});
  json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "l+";  // what lies between matches is a word too
  CHECK(ids_of(json, "hello") == std::vector<int32_t>{257, 'l', 'l', 'o'});
  json = table({{"h", "e"}, {"l", "o"}, {"he", "lo"}});
  json["model"]["vocab"]["hlo"] = 258;  // made by no merge
  json["model"]["vocab"]["helo"] = 260;
  json["added_tokens"][0]["id"] = 259;
  CHECK(ids_of(json, "hlo") == std::vector<int32_t>{'h', 257});
  json["model"]["ignore_merges"] = true;
  CHECK(ids_of(json, "hlo") == std::vector<int32_t>{258});
}

TEST_CASE("merges are read as pairs too, and from the two files of GPT-2") {
  BpeJson json = table(some_merges);
  const std::vector<int32_t> expected = ids_of(json, "hello well");
  TemporaryFolder folder;
  BpeJson vocab = json["model"]["vocab"];
  vocab["<|endoftext|>"] = 262;
  std::string merges = "#version: 0.2\r\n";
  BpeJson pairs = BpeJson::array();
  for (const auto& [left, right] : some_merges) {
    pairs.push_back({left, right});
    merges += left + " " + right + "\r\n";
  }
  json["model"]["merges"] = pairs;
  CHECK(ids_of(json, "hello well") == expected);
  const std::string made =
      tokenizer_json_of(folder.write("vocab.json", vocab.dump()), folder.write("merges.txt", merges));
  CHECK(is_byte_bpe(made));
  CHECK(load_byte_bpe(made, "made")->encode("hello well") == expected);
  CHECK(load_byte_bpe(made, "made")->eos_id() == 262);
}

TEST_CASE("files that are not such a tokenizer are refused with the key") {
  CHECK_CONTAINS(message_of([] { load_byte_bpe("{", "t.json"); }), "t.json: is not JSON");
  CHECK_CONTAINS(refusal({{"version", "1.0"}}), "t.json: model: is not there");
  const auto changed = [](const std::function<void(BpeJson&)>& change) {
    BpeJson json = table(some_merges);
    change(json);
    return refusal(json);
  };
  CHECK_CONTAINS(changed([](BpeJson& j) { j["model"]["type"] = "Unigram"; }), "model.type: is not what");
  CHECK_CONTAINS(changed([](BpeJson& j) { j["normalizer"] = {{"type", "NFC"}}; }), "normalizer: is not what");
  CHECK_CONTAINS(changed([](BpeJson& j) { j["model"]["vocab"].erase("a"); }), "has no token for byte 0x61");
  CHECK_CONTAINS(changed([](BpeJson& j) { j["model"]["vocab"]["b"] = 97; }), "has the id of another token; found 97");
  CHECK_CONTAINS(changed([](BpeJson& j) { j["model"]["vocab"]["b"] = -1; }), "model.vocab: b: is no token's id");
  CHECK_CONTAINS(changed([](BpeJson& j) { j["model"]["vocab"]["b"] = 1e9; }), "is no token's id");
  CHECK_CONTAINS(changed([](BpeJson& j) { j["model"]["vocab"]["\xe4\xb8\xad"] = 300; }), "stand for no bytes");
  CHECK_CONTAINS(changed([](BpeJson& j) { j["model"]["merges"][2] = "q q"; }), "model.merges[2]: joins or makes");
  CHECK_CONTAINS(changed([](BpeJson& j) { j["model"]["merges"][2] = 7; }), "is no pair of tokens; found 7");
  CHECK_CONTAINS(changed([](BpeJson& j) { j["model"].erase("merges"); }), "model.merges: is no list");
  CHECK_CONTAINS(changed([](BpeJson& j) { j["added_tokens"] = BpeJson::array(); }), "no token for the beginning");
  CHECK_CONTAINS(changed([](BpeJson& j) { j["added_tokens"][0].erase("id"); }), "no content or no id");
  CHECK_CONTAINS(changed([](BpeJson& j) { j["pre_tokenizer"] = {{"type", "Whitespace"}}; }), "pre_tokenizer: is not");
  CHECK_CONTAINS(changed([](BpeJson& j) { j["pre_tokenizer"]["add_prefix_space"] = true; }), "add_prefix_space");
  CHECK_CONTAINS(changed([](BpeJson& j) {
                   j["pre_tokenizer"] = {
                       {"type", "Sequence"},
                       {"pretokenizers",
                        {{{"type", "Split"}, {"pattern", {{"Regex", "(["}}}, {"behavior", "Isolated"}},
                         {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
                 }),
                 "the regular expression that cuts words cannot be used");
}
