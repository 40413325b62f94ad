#pragma once
// What a tokenizer.json with byte-level BPE says, checked.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

struct ByteBpeToken {
  std::string bytes;     ///< what it stands for; a special token's name; empty: an id that no token has
  bool special = false;  ///< never made of text
};

struct ByteBpeMerge {
  int32_t left = 0;
  int32_t right = 0;
  int32_t joined = 0;
};

struct ByteBpeFile {
  std::vector<ByteBpeToken> tokens;  ///< by id
  std::vector<ByteBpeMerge> merges;  ///< in the order in which they are tried
  std::string pattern;               ///< what cuts words
  bool ignore_merges = false;        ///< a word that is a token is that token
  int32_t bos = -1;
  int32_t eos = -1;
};

/// Parses and checks a tokenizer.json; throws as load_byte_bpe (data/byte_bpe.h).
ByteBpeFile parse_byte_bpe(std::string_view text, const std::string& name);

}  // namespace minillm
