#include "generate/utf8_stream.h"

#include "core/rng.h"
#include "core/utf8.h"

#include <doctest/doctest.h>

#include <vector>

using namespace minillm;
using Invalid = CharacterStream::Invalid;

namespace {

/// The pieces of a text fed `piece` bytes at a time; the flushed end comes last.
std::vector<std::string> pieces(const std::string& bytes, size_t piece, Invalid invalid = Invalid::replace) {
  CharacterStream stream(invalid);
  std::vector<std::string> out;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    out.push_back(stream.feed(bytes.substr(at, piece)));
  }
  out.push_back(stream.flush());
  return out;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    text += part;
  }
  return text;
}

}  // namespace

TEST_CASE("characters of one to four bytes come out whole, and as soon as they are") {
  const std::string text = "歪😀éa";
  const std::vector<std::string> one_byte = pieces(text, 1);
  CHECK(one_byte == std::vector<std::string>{"", "", "歪", "", "", "", "😀", "", "é", "a", ""});
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    CHECK(joined(pieces(text, piece)) == text);
    CHECK(joined(pieces(text, piece, Invalid::keep)) == text);
  }
}

TEST_CASE("every code point survives byte by byte") {
  CharacterStream stream;
  int wrong = 0;
  for (uint32_t code = 0; code <= 0x10ffff; ++code) {
    if (code >= 0xd800 && code <= 0xdfff) {
      continue;
    }
    std::string text;
    if (code < 0x80) {
      text = {static_cast<char>(code)};
    } else if (code < 0x800) {
      text = {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
    } else if (code < 0x10000) {
      text = {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 63)),
              static_cast<char>(0x80 | (code & 63))};
    } else {
      text = {static_cast<char>(0xf0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 63)),
              static_cast<char>(0x80 | (code >> 6 & 63)), static_cast<char>(0x80 | (code & 63))};
    }
    std::string out;
    for (const char byte : text) {
      out += stream.feed({&byte, 1});
    }
    wrong += out == text ? 0 : 1;
  }
  CHECK(wrong == 0);
  CHECK(stream.flush().empty());
}

TEST_CASE("invalid bytes become U+FFFD, one for each maximal part") {
  // The right sides are what Python's bytes.decode("utf-8", "replace") gives.
  const std::pair<const char*, const char*> cases[] = {{"\xff", "�"},
                                                       {"\xe6\xad", "�"},
                                                       {"a\xe6\xad"
                                                        "b",
                                                        "a�b"},
                                                       {"\xf0\x9f\x98", "�"},
                                                       {"\xc0\xaf", "��"},
                                                       {"\xed\xa0\x80", "���"},
                                                       {"\xf4\x90\x80\x80", "����"},
                                                       {"\xe2\x82\xe2\x82\xac", "�€"},
                                                       {"\xf0\x80\x80\x41", "���A"},
                                                       {"\xc3\x28", "�("},
                                                       {"\x80\x80", "��"},
                                                       {"\xf1\x80\x80\xff\xc2", "���"},
                                                       {"\xe0\x9f\xbf", "���"}};
  for (const auto& [bytes, text] : cases) {
    CHECK(valid_utf8(bytes) == text);
    for (size_t piece = 1; piece < 5; ++piece) {
      CHECK(joined(pieces(bytes, piece)) == text);
      CHECK(joined(pieces(bytes, piece, Invalid::keep)) == bytes);
    }
  }
}

TEST_CASE("random bytes: the cut does not matter, the result is valid, at most three bytes wait") {
  RandomStream random(random_key(1, "test"));
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (uint64_t i = random.below(24); i > 0; --i) {
      const char lead[] =
          "\xe6\xad\xaa\xf0\x9f\x98\x80\xed\xa0\xc3"
          "a\xff";
      bytes += lead[random.below(12)];
    }
    const std::string whole = valid_utf8(bytes);
    CHECK(valid_utf8(whole) == whole);
    CHECK(joined(pieces(bytes, 1 + random.below(4))) == whole);
    CharacterStream keeping(Invalid::keep);
    const std::string shown = keeping.feed(bytes);
    const std::string rest = keeping.flush();
    CHECK(rest.size() <= 3);
    CHECK(shown + rest == bytes);
  }
}
