#pragma once
// What the tests of prepare share: a text, options, and the message of a refusal.

#include "core/rng.h"
#include "data/prepare.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

#include <string>

namespace minillm::test {

/// Lines of words, of about this many bytes.
inline std::string story(size_t bytes, uint64_t seed = 1) {
  static const char* const words[] = {"once",   "upon", "a",     "time",  "there",  "lived", "some",
                                      "girl",   "and",  "her",   "old",   "mother", "in",    "the",
                                      "forest", "who",  "baked", "bread", "every",  "day"};
  RandomStream random(random_key(seed, "story"));
  std::string text;
  while (text.size() < bytes) {
    for (uint64_t word = 0; word < 5 + random.below(6); ++word) {
      text += std::string(word == 0 ? "" : " ") + words[random.below(std::size(words))];
    }
    text += ".\n";
  }
  return text;
}

/// in.txt of the folder becomes its data.h5.
inline PrepareOptions options_for(const TemporaryFolder& folder, int64_t vocab_size = 300) {
  PrepareOptions options;
  options.inputs = {folder / "in.txt"};
  options.out = folder / "data.h5";
  options.vocab_size = vocab_size;
  return options;
}

inline std::string refusal(const PrepareOptions& options) {
  return message_of(Fault::input, [&] { prepare(options); });
}

}  // namespace minillm::test
