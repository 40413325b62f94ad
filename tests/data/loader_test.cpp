#include "data/loader.h"

#include "core/rng.h"
#include "data/synthetic.h"
#include "data/tokenizer.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

#include <cmath>
#include <map>
#include <set>

using namespace minillm;
using namespace minillm::test;

namespace {

Tokens counting(int64_t size, int64_t period) {
  std::vector<uint16_t> ids;
  for (int64_t i = 0; i < size; ++i) {
    ids.push_back(static_cast<uint16_t>(i % period));
  }
  return Tokens(std::move(ids));
}

}  // namespace

TEST_CASE("windows need one token more than they have inputs (D01, D02, D03)") {
  for (int64_t size : {0, 1, 10, 40, 64}) {
    const Tokens tokens = counting(size, 100);
    CHECK_CONTAINS(message_of(Fault::input, [&] { Loader(tokens, 64, "shuffled", 1, "val"); }),
                   fmt::format("the val split: is shorter than one window: needs 65 tokens, has {}", size));
    CHECK(window_count(tokens, 64) == 0);
  }
  CHECK(window_count(counting(65, 100), 64) == 1);
  CHECK(window_count(counting(66, 100), 64) == 1);
  CHECK(window_count(counting(128, 100), 64) == 1);
  CHECK(window_count(counting(129, 100), 64) == 2);
}

TEST_CASE("targets are the inputs shifted by one, in every window of both orders (D06)") {
  const Tokens tokens = counting(1000, 1000);
  for (const char* order : {"sequential", "shuffled"}) {
    const Loader loader(tokens, 32, order, 5);
    CHECK(loader.windows() == 31);
    const Batch batch = loader.batch(0, 31);
    CHECK(batch.tokens() == 31 * 32);
    for (size_t i = 0; i < batch.inputs.size(); ++i) {
      REQUIRE(batch.targets[i] == batch.inputs[i] + 1);
      REQUIRE(batch.inputs[i] % 32 == static_cast<int32_t>(i % 32));
    }
  }
}

TEST_CASE("sequential: sequence b of step s is window (s * batch_size + b) mod W") {
  const Tokens tokens = counting(32 * 7 + 5, 1000);
  const Loader loader(tokens, 32, "sequential", 9);
  CHECK(loader.windows() == 7);
  for (uint64_t step = 0; step < 5; ++step) {
    const Batch batch = loader.batch(step * 3, 3);
    for (uint64_t b = 0; b < 3; ++b) {
      CHECK(batch.inputs[b * 32] == static_cast<int32_t>((step * 3 + b) % 7 * 32));
    }
  }
}

TEST_CASE("shuffled: every epoch is a permutation, another one each time and for each seed") {
  const Tokens tokens = counting(8 * 50 + 1, 1000);
  const Loader loader(tokens, 8, "shuffled", 1);
  const Loader other(tokens, 8, "shuffled", 2);
  std::vector<std::vector<int64_t>> epochs;
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> windows;
    for (uint64_t i = 0; i < 50; ++i) {
      windows.push_back(loader.window_of(epoch * 50 + i));
    }
    CHECK(std::set<int64_t>(windows.begin(), windows.end()).size() == 50);
    CHECK(*std::max_element(windows.begin(), windows.end()) == 49);
    epochs.push_back(windows);
  }
  CHECK(epochs[0] != epochs[1]);
  CHECK(epochs[1] != epochs[2]);
  CHECK_FALSE(std::is_sorted(epochs[0].begin(), epochs[0].end()));
  int same = 0;
  for (uint64_t i = 0; i < 50; ++i) {
    same += loader.window_of(i) == other.window_of(i) ? 1 : 0;
  }
  CHECK(same < 10);
  // The definition, written out: perm(seed, i div W)[i mod W].
  const Permutation second(random_key(random_key(1, "data order"), 1), 50);
  CHECK(loader.window_of(50 + 17) == static_cast<int64_t>(second(17)));
}

TEST_CASE("a batch is a function of its first sample alone: however it is cut, across epochs too") {
  const Tokens tokens = counting(8 * 10 + 1, 1000);
  const Loader loader(tokens, 8, "shuffled", 3);
  const Batch whole = loader.batch(7, 6);
  Batch part;
  std::vector<int32_t> inputs;
  for (const auto& [first, count] : {std::pair<uint64_t, int64_t>{7, 1}, {8, 3}, {11, 2}}) {
    loader.batch(first, count, part);
    inputs.insert(inputs.end(), part.inputs.begin(), part.inputs.end());
  }
  CHECK(inputs == whole.inputs);
}

TEST_CASE("masked: hidden positions alone are counted, their target is what was hidden, the draws are the sample's") {
  const Tokens tokens = counting(100 * 64 + 1, 900);
  const Loader plain(tokens, 64, "sequential", 1);
  const Loader masked(tokens, 64, "sequential", 1, "train", "masked");
  const Batch seen = plain.batch(0, 100);
  const Batch hidden = masked.batch(0, 100);
  int64_t count = 0;
  for (size_t i = 0; i < hidden.inputs.size(); ++i) {
    const bool is_hidden = hidden.targets[i] >= 0;
    CHECK(hidden.targets[i] == (is_hidden ? seen.inputs[i] : -1));
    CHECK(hidden.inputs[i] == (is_hidden ? 0 : seen.inputs[i]));
    count += is_hidden ? 1 : 0;
  }
  CHECK(count == hidden.counted());
  CHECK(static_cast<double>(count) / 6400 == doctest::Approx(0.15).epsilon(0.1));
  CHECK(masked.batch(37, 1).inputs ==
        std::vector<int32_t>(hidden.inputs.begin() + 37 * 64, hidden.inputs.begin() + 38 * 64));
  CHECK(Loader(tokens, 64, "sequential", 2, "train", "masked").batch(0, 100).inputs != hidden.inputs);
}

TEST_CASE("in sequential order sample i is window i, as an evaluation reads them") {
  const Tokens tokens = counting(100, 1000);
  const Batch batch = Loader(tokens, 10, "sequential", 1).batch(2, 3);
  CHECK(batch.batch_size == 3);
  CHECK(batch.inputs.front() == 20);
  CHECK(batch.targets.back() == 50);
  message_of(Fault::input, [&] { Loader(tokens, 10, "random", 1); });
}

TEST_CASE("the built-in corpus: both splits, a word table, text that reads") {
  const Synthetic synthetic = make_synthetic();
  const TokenFile& data = synthetic.data;
  CHECK(data.vocab_size <= 64);
  CHECK(data.train.size() >= 400000);
  CHECK(data.val.size() >= 40000);
  CHECK(data.train[0] == 1);
  const auto tokenizer = load_tokenizer(data.tokenizer, "synthetic");
  CHECK(tokenizer->vocab_size() == data.vocab_size);
  CHECK(tokenizer->sha256() == data.tokenizer_sha256);
  std::vector<int32_t> ids;
  for (int64_t i = 1; i < 400; ++i) {
    ids.push_back(data.val[i]);
    CHECK(data.val[i] >= 3);
    CHECK(data.val[i] < data.vocab_size);
  }
  const std::string text = tokenizer->decode(ids);
  CHECK(tokenizer->encode(text) == ids);
  CHECK_CONTAINS(text, " the ");
  const Synthetic again = make_synthetic();
  CHECK(again.data.sha256 == data.sha256);
  CHECK(make_synthetic(2).data.sha256 != data.sha256);
  CHECK(open_data("synthetic").sha256 == data.sha256);
  CHECK(data.unigram_loss.value() > synthetic.entropy_rate + 1);
}

TEST_CASE("the built-in corpus' entropy rate agrees with what a long sample shows") {
  const Synthetic synthetic = make_synthetic(11, 2000000, 10);
  const Tokens& tokens = synthetic.data.train;
  // Entropy of a token given the two before, from counts: independent of the grammar's formula. Two are enough, for
  // agreement reaches from the determiner over at most one word.
  std::map<uint64_t, std::map<int32_t, int64_t>> counts;
  for (int64_t i = 2; i < tokens.size(); ++i) {
    ++counts[static_cast<uint64_t>(tokens[i - 2]) << 8 | static_cast<uint64_t>(tokens[i - 1])][tokens[i]];
  }
  double nats = 0;
  for (const auto& [context, next] : counts) {
    double total = 0;
    for (const auto& [token, count] : next) {
      total += static_cast<double>(count);
    }
    for (const auto& [token, count] : next) {
      nats -= static_cast<double>(count) * std::log(static_cast<double>(count) / total);
    }
  }
  CHECK(nats / static_cast<double>(tokens.size() - 2) == doctest::Approx(synthetic.entropy_rate).epsilon(0.002));
}
