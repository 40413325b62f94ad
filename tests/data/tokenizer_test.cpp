#include "data/tokenizer.h"

#include "core/rng.h"
#include "data/word_table.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

#include <chrono>

using namespace minillm;
using namespace minillm::test;

namespace {

/// A few kilobytes in which words, digits, indentation, two scripts and rare characters occur.
std::string sample_text() {
  static const char* const words[] = {"the",    "quick", "brown", "fox",     "jumps", "over", "lazy",  "dogs", "and",
                                      "thinks", "about", "2024",  "numbers", "模型",  "é",    "naïve", "Yes!", "(no)"};
  RandomStream random(random_key(7, "sample"));
  std::string text;
  for (int line = 0; line < 400; ++line) {
    text += line % 7 == 0 ? "    " : "";
    for (uint64_t word = 0; word < 4 + random.below(8); ++word) {
      text += std::string(word == 0 ? "" : " ") + words[random.below(std::size(words))];
    }
    text += line % 10 == 0 ? "\n\n" : "\n";
  }
  return text + "𝄞😀\n";
}

const Tokenizer& sample_tokenizer() {
  static const TokenizerTraining training = train_tokenizer(sample_text(), 340);
  return *training.tokenizer;
}

void check_round_trip(const std::string& bytes) {
  const std::vector<int32_t> ids = sample_tokenizer().encode(bytes);
  CHECK(sample_tokenizer().decode(ids) == bytes);
  for (int32_t id : ids) {
    CHECK(id >= 3);  // never <unk>, <s> or </s> from text
  }
}

double seconds_to_encode(const std::string& bytes) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<int32_t> ids = sample_tokenizer().encode(bytes);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  CHECK(sample_tokenizer().decode(ids) == bytes);
  return seconds;
}

}  // namespace

TEST_CASE("ids: special names, bytes, then what was learned") {
  const Tokenizer& tokenizer = sample_tokenizer();
  CHECK(tokenizer.vocab_size() == 340);
  CHECK(tokenizer.piece(0) == "<unk>");
  CHECK(tokenizer.piece(1) == "<s>");
  CHECK(tokenizer.piece(2) == "</s>");
  CHECK(tokenizer.piece(3) == "<0x00>");
  CHECK(tokenizer.piece(258) == "<0xFF>");
  CHECK(tokenizer.bytes(3 + 0x0a) == "\n");
  CHECK(tokenizer.kind(1) == PieceKind::control);
  CHECK(tokenizer.kind(13) == PieceKind::byte);
  CHECK(tokenizer.kind(300) == PieceKind::normal);
  CHECK(tokenizer.bos_id() == 1);
  CHECK(tokenizer.bytes(1).empty());
  CHECK(tokenizer.score(260) == tokenizer.score(259) - 1);
  CHECK(tokenizer.encode(" the quick").size() <= 4);  // it learned words
  message_of(Fault::input, [&] { (void)tokenizer.piece(340); });
  message_of(Fault::input, [&] { (void)tokenizer.bytes(-1); });
}

TEST_CASE("texts that tokenizers lose come back byte for byte") {
  check_round_trip("");
  check_round_trip("line1\n\nline2\n");                           // T06
  check_round_trip("  a  b\t c ");                                // T07
  check_round_trip("… ﬁ \xc2\xa0 \xe3\x80\x80 e\xcc\x81");        // ellipsis, ligature, blanks, combining accent
  check_round_trip("foo</s>bar<s><unk><0x0A>");                   // T08
  check_round_trip(std::string("ab\0cd\n", 6));                   // T05
  check_round_trip("ok \xff\xfe bad \xe2\x82 end\n");             // T10
  check_round_trip("\xe6\xad");                                   // T15
  check_round_trip("\xef\xbb\xbfOnce upon \xef\xbb\xbf a time");  // T21
  check_round_trip("a\r\nb\r\n\r\n");                             // T22
  check_round_trip("\xe2\x96\x81 x\xe2\x96\x81\xe2\x96\x81y\xe2\x96\x85\xef\xbf\xbd");  // marks of SentencePiece itself
  check_round_trip("😀𝄞模型龘\xed\xa0\x80\xf4\x90\x80\x80\xc0\x80");  // surrogate, too large, overlong
  CHECK(sample_tokenizer().encode("\xe6\xad") == std::vector<int32_t>{3 + 0xe6, 3 + 0xad});
  CHECK(sample_tokenizer().encode("\n") == std::vector<int32_t>{3 + 0x0a});
}

TEST_CASE("no blank is added or lost at the start (T17)") {
  const Tokenizer& tokenizer = sample_tokenizer();
  CHECK(tokenizer.decode(tokenizer.encode("Hello")) == "Hello");
  CHECK(tokenizer.decode(tokenizer.encode(" Hello")) == " Hello");
  CHECK(tokenizer.encode("Hello") != tokenizer.encode(" Hello"));
}

TEST_CASE("a blank that the vocabulary has no piece for is a byte") {
  const std::vector<std::string> texts = {"helloworld\n", "一二三四五一二\n一二",
                                          "aab bba"};  // the last has no room for it
  for (const std::string& text : texts) {
    const TokenizerTraining training = train_tokenizer(text, 261);
    const Tokenizer& tokenizer = *training.tokenizer;
    CHECK(tokenizer.encode(" ") == std::vector<int32_t>{3 + 0x20});
    for (const char* bytes : {" a", "b  a ", "二 一", "\xe2\x96\x81 \xe2\x96\x81", " \n ", "一\xff b"}) {
      CHECK(tokenizer.decode(tokenizer.encode(bytes)) == bytes);
    }
  }
  CHECK(sample_tokenizer().encode(" ") != std::vector<int32_t>{3 + 0x20});  // what it learned stays a piece
}

TEST_CASE("10,000 random byte strings round trip") {
  static const std::string parts[] = {"\n",
                                      std::string(1, '\0'),
                                      "\xe2\x96\x81",
                                      "\xe2\x96",
                                      " ",
                                      "  ",
                                      "the",
                                      "模",
                                      "\xff",
                                      "\xc3",
                                      "é",
                                      "</s>",
                                      "<0x0A>",
                                      "\t",
                                      "\r",
                                      "12",
                                      "😀",
                                      "fox "};
  const Tokenizer& tokenizer = sample_tokenizer();
  RandomStream random(random_key(3, "bytes"));
  int different = 0;
  int special = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string bytes;
    const uint64_t pieces = random.below(40);
    for (uint64_t piece = 0; piece < pieces; ++piece) {
      if (random.below(2) == 0) {
        bytes += static_cast<char>(random.below(256));
      } else {
        bytes += parts[random.below(std::size(parts))];
      }
    }
    const std::vector<int32_t> ids = tokenizer.encode(bytes);
    different += tokenizer.decode(ids) == bytes ? 0 : 1;
    special += std::any_of(ids.begin(), ids.end(), [](int32_t id) { return id < 3; }) ? 1 : 0;
  }
  CHECK(different == 0);
  CHECK(special == 0);
}

TEST_CASE("special names in the corpus stay text (T08)") {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += "foo</s>bar<s><unk> <0x41> x</s>\n";
  }
  const TokenizerTraining training = train_tokenizer(text, 283);
  CHECK(training.characters == 17);
  const std::vector<int32_t> ids = training.tokenizer->encode("foo</s>bar<s><unk><0x41>");
  CHECK(training.tokenizer->decode(ids) == "foo</s>bar<s><unk><0x41>");
  CHECK(*std::min_element(ids.begin(), ids.end()) >= 259);
}

TEST_CASE("training is deterministic and a reloaded model gives the same ids (T12, T13)") {
  const std::string text = sample_text() + "\n\n\tx\t\xe2\x96\x81y\xe2\x96\x85 z\n";
  const TokenizerTraining first = train_tokenizer(text, 340);
  const std::unique_ptr<Tokenizer> reloaded = load_tokenizer(first.tokenizer->serialized(), "model");
  CHECK(reloaded->encode(text) == first.tokenizer->encode(text));
  CHECK(reloaded->sha256() == first.tokenizer->sha256());
  for (int32_t id = 0; id < 340; ++id) {
    CHECK(reloaded->piece(id) == first.tokenizer->piece(id));
    CHECK(reloaded->bytes(id) == first.tokenizer->bytes(id));
  }
  const std::string ties = "bbbaaaddddcccc";
  const std::string once = train_tokenizer(ties, 266).tokenizer->serialized();
  for (int i = 0; i < 20; ++i) {
    CHECK(train_tokenizer(ties, 266).tokenizer->serialized() == once);
  }
}

TEST_CASE("a text too small for the vocabulary names the largest it can give (T01, T02)") {
  const auto message = [](const std::string& text, int64_t vocab) {
    return message_of(Fault::input, [&] { train_tokenizer(text, vocab); });
  };
  const std::string refused = message("a b c d a b c", 4000);
  CHECK_CONTAINS(refused, "too small for a vocabulary of 4000");
  const size_t at = refused.find("at most ");
  REQUIRE(at != std::string::npos);
  const int64_t largest = std::stoll(refused.substr(at + 8));
  CHECK(train_tokenizer("a b c d a b c", largest).tokenizer->vocab_size() == largest);
  CHECK_CONTAINS(message("a b c d a b c", largest + 1), fmt::format("at most {}", largest));
  CHECK_CONTAINS(message("hi", 300), "too small for a vocabulary of 300");
  CHECK_CONTAINS(message("hi", 259), "at least 260");
  CHECK_CONTAINS(message("hi", -1), "at least 260");
  CHECK_CONTAINS(message("", 300), "no character");
  CHECK_CONTAINS(message("\n\n\xff", 300), "no character");
  CHECK(train_tokenizer("hi", 260).tokenizer->decode({259}) == "h");  // one character fits, the other goes to bytes
}

TEST_CASE("every vocabulary works up to the one that is named (T01, T02)") {
  // Without a pair that occurs twice there is nothing to merge: all room is for characters.
  for (const char* text : {"a\nb\nc\nd\ne", "a b c d a b c", "hello world", "  \n   \n", "春眠不覺曉處處聞啼鳥", "hi",
                           "夜來 風雨聲 花落 知多少 a\xe2\x96\x85z", "x<s>y</s>z<0x41>w"}) {
    CAPTURE(text);
    const std::string refused = message_of(Fault::input, [&] { train_tokenizer(text, 5000); });
    const int64_t largest = std::stoll(refused.substr(refused.find("use --vocab ") + 12));
    CHECK(largest >= smallest_vocabulary);
    for (int64_t size = smallest_vocabulary; size <= largest; ++size) {
      const TokenizerTraining training = train_tokenizer(text, size);
      CHECK(training.tokenizer->vocab_size() == size);
      CHECK(training.tokenizer->decode(training.tokenizer->encode(text)) == text);
    }
    CHECK_CONTAINS(message_of(Fault::input, [&] { train_tokenizer(text, largest + 1); }),
                   fmt::format("expected a vocabulary of at most {}; use --vocab {} or", largest, largest));
  }
}

TEST_CASE("long lines are cut for training, not skipped (T04)") {
  std::string line;
  for (int i = 0; i < 10000; ++i) {
    line += "zebra crossing ";
  }
  const TokenizerTraining training = train_tokenizer("a\nb\nc\n" + line, 290);
  CHECK(training.tokenizer->encode(" zebra crossing").size() <= 4);
  CHECK(training.tokenizer->decode(training.tokenizer->encode(line)) == line);
}

TEST_CASE("rare characters make room: the most frequent are kept") {
  std::string text;
  for (int i = 0; i < 600; ++i) {  // character i occurs 1 + (i < 30) * 20 times
    const int code = 0x4e00 + i;
    const std::string character = {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 63)),
                                   static_cast<char>(0x80 | (code & 63))};
    for (int copy = 0; copy < (i < 30 ? 21 : 1); ++copy) {
      text += character;
    }
  }
  const TokenizerTraining training = train_tokenizer(text, 359);
  CHECK(training.characters == 600);
  CHECK(training.characters_kept == 90);
  CHECK(training.tokenizer->encode("一").size() == 1);            // U+4E00, frequent
  CHECK(training.tokenizer->encode("\xe5\x81\xb0").size() == 3);  // U+5070, rare: its three bytes
  CHECK(training.tokenizer->decode(training.tokenizer->encode(text)) == text);
}

TEST_CASE("unbroken runs cost linear time (T14)") {
  for (const char* unit : {"a", "模"}) {
    std::string run;
    for (int i = 0; i < 100000; ++i) {
      run += unit;
    }
    const double once = seconds_to_encode(run);
    for (int i = 0; i < 900000; ++i) {
      run += unit;
    }
    CHECK(seconds_to_encode(run) < 40 * once + 0.05);  // 10 times the text; quadratic would be 100
  }
}

TEST_CASE("parts cut at line ends have the ids of the whole") {
  const std::string text = sample_text();
  const size_t cut = text.find('\n', text.size() / 2) + 1;
  std::vector<int32_t> ids;
  sample_tokenizer().encode(text.substr(0, cut), ids);
  sample_tokenizer().encode(text.substr(cut), ids);
  CHECK(ids == sample_tokenizer().encode(text));
}

TEST_CASE("what is no tokenizer is refused") {
  CHECK_CONTAINS(message_of(Fault::input, [] { load_tokenizer("", "t.model"); }), "t.model: is not a SentencePiece");
  CHECK_CONTAINS(message_of(Fault::input, [] { load_tokenizer("hello world\n", "t.model"); }), "t.model: ");
  const std::string model = sample_tokenizer().serialized();
  message_of(Fault::input, [&] { load_tokenizer(model.substr(0, model.size() / 2), "t.model"); });
}

TEST_CASE("a word table encodes its words and nothing else") {
  const WordTable table({"The", " cat", " catalog", ".\n"});
  const auto reloaded = load_tokenizer(table.serialized(), "words");
  CHECK(reloaded->vocab_size() == 7);
  CHECK(reloaded->encode("The cat.\nThe catalog.\n") == std::vector<int32_t>{3, 4, 6, 3, 5, 6});
  CHECK(reloaded->encode("The dog cats eat.\n") == std::vector<int32_t>{3, 0, 0, 0, 6});
  CHECK(reloaded->decode({1, 3, 4, 6}) == "The cat.\n");
  CHECK(reloaded->piece(6) == ".\n");
  message_of(Fault::input, [&] { load_tokenizer(table.serialized().substr(0, 30), "words"); });
}
