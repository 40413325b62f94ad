// The numbers of the lessons that train a model: bounds that hold whatever the machine rounds.

#include "tests/experiments/lesson_support.h"

#include <cmath>

using namespace minillm;
using namespace minillm::test;

TEST_CASE("D11 silu-gate: -0.2785 at -1.2785, 3.9281 at 4, and a trained model's gates on both sides of 0..1") {
  const Numbers numbers = numbers_of_lesson("silu-gate");
  check_near(numbers.at("lowest"), {-1.2785, -0.2785}, 5e-5);
  check_near(numbers.at("silu_4"), {3.9281}, 5e-5);
  REQUIRE(numbers.at("negative").size() == 4);
  for (size_t layer = 0; layer < 4; ++layer) {
    CHECK(numbers.at("negative")[layer] > 0.2);
    CHECK(numbers.at("negative")[layer] < 0.8);
    CHECK(numbers.at("above_one")[layer] > 0.001);
  }
}

TEST_CASE("D22 stream-sum: the last stream and its logits are sums of what was written") {
  const Numbers numbers = numbers_of_lesson("stream-sum");
  CHECK(numbers.at("writes")[0] == 8);
  CHECK(numbers.at("difference")[0] < 2e-6);
  CHECK(numbers.at("shares").size() == 9);
  CHECK(is_within(numbers.at("logit")[0], numbers.at("logit")[1], 1e-5));
}

TEST_CASE("D23 ffn-neurons: peaks in order, and fewer favourite words than neurons") {
  const Numbers numbers = numbers_of_lesson("ffn-neurons");
  REQUIRE(numbers.at("peaks").size() == 4);
  CHECK(numbers.at("peaks")[0] >= numbers.at("peaks")[3]);
  CHECK(numbers.at("peaks")[3] > 0);
  CHECK(numbers.at("neurons")[0] == 96);
  CHECK(numbers.at("favourites")[0] < numbers.at("neurons")[0]);
}

TEST_CASE("N16 norm-per-layer: size 1 behind every norm before training") {
  const Numbers numbers = numbers_of_lesson("norm-per-layer");
  REQUIRE(numbers.at("start_behind").size() == 9);
  for (size_t norm = 0; norm < 9; ++norm) {
    const double square = std::pow(numbers.at("start_before")[norm], 2);
    CHECK(is_within(numbers.at("start_behind")[norm], std::sqrt(square / (square + 1e-6)), 1e-3));
    CHECK(is_within(numbers.at("trained_behind")[norm], 1, 0.8));
  }
  CHECK(numbers.at("trained_before").back() > 5 * numbers.at("start_before").back());
}

TEST_CASE("N18 zero-mean: by chance before training, small after it") {
  const Numbers numbers = numbers_of_lesson("zero-mean");
  const double by_chance = numbers.at("by_chance")[0];
  CHECK(by_chance == 1.0 / 32);
  for (const double share : numbers.at("start")) {
    CHECK(is_within(share, by_chance, 0.5));
  }
  for (const double share : numbers.at("trained")) {
    CHECK(share >= 0);
    CHECK(share < 0.25);
  }
}

TEST_SUITE("slow") {
  TEST_CASE("D24 ladder: each part more lowers the loss, the residual connection most") {
    const Numbers numbers = numbers_of_lesson("ladder");
    const double start = std::log(56.0);
    for (const char* rung : {"attention", "ffn", "residual", "norm"}) {
      const std::vector<double>& loss = numbers.at(rung);
      REQUIRE(loss.size() == 5);
      CHECK(is_within(loss[0], start, 0.02));
      CHECK(loss.back() > numbers.at("entropy")[0]);
      CHECK(loss.back() < numbers.at("unigram")[0]);
    }
    CHECK(numbers.at("attention")[1] > 3.3);  // a quarter of the way: frequencies at most
    CHECK(numbers.at("ffn")[1] > 3.3);
    CHECK(numbers.at("residual")[1] < 2.2);
    CHECK(numbers.at("norm")[1] < 2.2);
    CHECK(numbers.at("attention").back() > numbers.at("ffn").back());
    CHECK(numbers.at("ffn").back() > numbers.at("residual").back() + 0.05);
    CHECK(numbers.at("residual").back() > numbers.at("norm").back() - 0.02);  // one seed ranks no closer than this
  }
}
