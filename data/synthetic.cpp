#include "data/synthetic.h"

#include "core/error.h"
#include "core/rng.h"
#include "data/sha256.h"
#include "data/unigram.h"
#include "data/word_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

namespace minillm {

namespace {

/// Words of one kind; `first` is the id of the first of them.
struct Words {
  std::vector<std::string> words;
  uint16_t first = 0;

  uint64_t count() const { return words.size(); }
};

struct Grammar {
  // By number: 0 singular, 1 plural.
  std::array<Words, 2> determiners = {{{{"A", "Every"}}, {{"Two", "Many"}}}};
  Words moods = {{" small", " big", " old", " young", " happy", " quiet"}};
  std::array<Words, 2> animals = {{{{" cat", " dog", " fox", " bird", " horse", " mouse", " wolf", " duck"}},
                                   {{" cats", " dogs", " foxes", " birds", " horses", " mice", " wolves", " ducks"}}}};
  std::array<Words, 2> verbs = {
      {{{" sees", " finds", " likes", " takes", " hides"}}, {{" see", " find", " like", " take", " hide"}}}};
  Words article = {{" the"}};
  Words colours = {{" red", " green", " blue", " white"}};
  Words things = {{" ball", " box", " hat", " key", " lamp", " stone", " shoe", " coin"}};
  Words adverbs = {{" today", " again", " slowly"}};
  Words end = {{".\n"}};

  std::vector<std::string> table;  // all words in the order of their ids, from id 3 on

  Grammar() {
    for (Words* kind : {&determiners[0], &determiners[1], &moods, &animals[0], &animals[1], &verbs[0], &verbs[1],
                        &article, &colours, &things, &adverbs, &end}) {
      kind->first = static_cast<uint16_t>(3 + table.size());
      table.insert(table.end(), kind->words.begin(), kind->words.end());
    }
    check(table.size() + 3 <= 64, "the built-in corpus has at most 64 ids, found {}", table.size() + 3);
  }
};

class Writer {
 public:
  Writer(const Grammar& grammar, RandomKey key) : grammar_(grammar), random_(key) {}

  std::vector<uint16_t> write(int64_t tokens) {
    ids_ = {1};  // <s>
    while (static_cast<int64_t>(ids_.size()) < tokens) {
      sentence();
    }
    return std::move(ids_);
  }

 private:
  void sentence() {
    const size_t number = random_.below(2);
    choose(grammar_.determiners[number]);
    perhaps(grammar_.moods);
    choose(grammar_.animals[number]);
    choose(grammar_.verbs[number]);
    choose(grammar_.article);
    perhaps(grammar_.colours);
    choose(grammar_.things);
    perhaps(grammar_.adverbs);
    choose(grammar_.end);
  }

  void choose(const Words& kind) { ids_.push_back(static_cast<uint16_t>(kind.first + random_.below(kind.count()))); }

  void perhaps(const Words& kind) {
    if (random_.below(2) == 1) {
      choose(kind);
    }
  }

  const Grammar& grammar_;
  RandomStream random_;
  std::vector<uint16_t> ids_;
};

/// A uniform choice among n has ln n nats; an optional part ln 2 for being there, and half of its own choice.
double entropy_of_sentence(const Grammar& grammar) {
  const auto choice = [](const Words& kind) { return std::log(static_cast<double>(kind.count())); };
  const auto optional = [&](const Words& kind) { return std::log(2.0) + 0.5 * choice(kind); };
  return std::log(2.0) + choice(grammar.determiners[0]) + optional(grammar.moods) + choice(grammar.animals[0]) +
         choice(grammar.verbs[0]) + optional(grammar.colours) + choice(grammar.things) + optional(grammar.adverbs);
}

/// Determiner, animal, verb, article, thing, end; and three optional words.
constexpr double mean_tokens_of_sentence = 6 + 3 * 0.5;

std::vector<int64_t> count_ids(const std::vector<uint16_t>& ids, size_t vocab_size) {
  std::vector<int64_t> counts(vocab_size);
  for (uint16_t id : ids) {
    ++counts[id];
  }
  return counts;
}

std::string hash_of(const std::vector<uint16_t>& train, const std::vector<uint16_t>& val) {
  Sha256 hash;
  for (const auto* ids : {&train, &val}) {
    for (uint16_t id : *ids) {
      const std::array<unsigned char, 2> bytes = {static_cast<unsigned char>(id & 255),
                                                  static_cast<unsigned char>(id >> 8)};
      hash.update(bytes.data(), bytes.size());
    }
  }
  return hash.hex();
}

int64_t bytes_of(const Tokenizer& tokenizer, const std::vector<uint16_t>& ids) {
  int64_t bytes = 0;
  for (uint16_t id : ids) {
    bytes += static_cast<int64_t>(tokenizer.bytes(id).size());
  }
  return bytes;
}

}  // namespace

Synthetic make_synthetic(uint64_t seed, int64_t train_tokens, int64_t val_tokens) {
  const Grammar grammar;
  const WordTable tokenizer(grammar.table);
  std::vector<uint16_t> train = Writer(grammar, random_key(seed, "synthetic", "train")).write(train_tokens);
  std::vector<uint16_t> val = Writer(grammar, random_key(seed, "synthetic", "val")).write(val_tokens);
  Synthetic result;
  result.entropy_rate = entropy_of_sentence(grammar) / mean_tokens_of_sentence;
  TokenFile& data = result.data;
  data.path = "synthetic";
  data.vocab_size = tokenizer.vocab_size();
  data.tokenizer = tokenizer.serialized();
  data.tokenizer_sha256 = tokenizer.sha256();
  data.train_bytes = bytes_of(tokenizer, train);
  data.val_bytes = bytes_of(tokenizer, val);
  const size_t vocab_size = static_cast<size_t>(data.vocab_size);
  data.unigram_loss = unigram_loss(count_ids(train, vocab_size), count_ids(val, vocab_size));
  data.source = fmt::format("the built-in grammar, seed {}", seed);
  data.sha256 = hash_of(train, val);
  data.train = Tokens(std::move(train));
  data.val = Tokens(std::move(val));
  return result;
}

}  // namespace minillm
