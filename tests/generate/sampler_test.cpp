#include "generate/sampler.h"

#include "core/error.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

using namespace minillm;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

std::vector<double> distribution(const SamplerOptions& options, const std::vector<double>& logits) {
  Sampler sampler(options, 1);
  return sampler.probabilities(logits.data(), static_cast<int64_t>(logits.size()));
}

std::vector<int> counts(const SamplerOptions& options, const std::vector<double>& logits, int draws,
                        uint64_t seed = 1) {
  Sampler sampler(options, seed);
  std::vector<int> drawn(logits.size());
  for (int i = 0; i < draws; ++i) {
    const int32_t token = sampler.next(logits.data(), static_cast<int64_t>(logits.size()));
    ++drawn.at(static_cast<size_t>(token));
  }
  return drawn;
}

std::set<int32_t> tokens_drawn(const SamplerOptions& options, const std::vector<double>& logits, int draws = 2000) {
  const std::vector<int> drawn = counts(options, logits, draws);
  std::set<int32_t> tokens;
  for (size_t i = 0; i < drawn.size(); ++i) {
    if (drawn[i] > 0) {
      tokens.insert(static_cast<int32_t>(i));
    }
  }
  return tokens;
}

using Tokens = std::set<int32_t>;

void check_refused(const SamplerOptions& options, const char* option) {
  try {
    Sampler(options, 1);
    FAIL("accepted: ", option);
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::input);
    CHECK(error.problem().where == option);
  }
}

}  // namespace

TEST_CASE("temperature scales logits before the softmax") {
  const auto expect = [](double temperature, double p0, double p1, double p2) {
    const std::vector<double> p = distribution({temperature, 0, 1}, {2, 1, 0});
    CHECK(std::fabs(p[0] - p0) < 5e-5);
    CHECK(std::fabs(p[1] - p1) < 5e-5);
    CHECK(std::fabs(p[2] - p2) < 5e-5);
  };
  expect(0.5, 0.8668, 0.1173, 0.0159);
  expect(1.0, 0.6652, 0.2447, 0.0900);
  expect(2.0, 0.5065, 0.3072, 0.1863);
}

TEST_CASE("draws follow the distribution") {
  const std::vector<double> logits = {2, 1, 0, -1, 0.5, -3};
  for (const SamplerOptions& options :
       {SamplerOptions{1, 0, 1}, SamplerOptions{0.7, 4, 1}, SamplerOptions{1.5, 0, 0.8}}) {
    const int draws = 200'000;
    const std::vector<double> p = distribution(options, logits);
    const std::vector<int> drawn = counts(options, logits, draws, 42);
    double chi_squared = 0;
    int free = -1;
    for (size_t i = 0; i < p.size(); ++i) {
      if (p[i] == 0) {
        CHECK(drawn[i] == 0);
        continue;
      }
      const double expected = p[i] * draws;
      chi_squared += (drawn[i] - expected) * (drawn[i] - expected) / expected;
      ++free;
    }
    // The 99.9 % points of chi-squared for 1..5 degrees of freedom.
    const double limits[] = {0, 10.828, 13.816, 16.266, 18.467, 20.515};
    CHECK(free >= 1);
    CHECK(chi_squared < limits[free]);
  }
}

TEST_CASE("greedy: temperature 0 and nearly 0, the lowest id among equals") {
  for (const double temperature : {0.0, 1e-30, 1e-7}) {
    CHECK(tokens_drawn({temperature, 0, 1}, {0, 3, 1, 3}, 50) == Tokens{1});
    CHECK(tokens_drawn({temperature, 0, 1}, {-9, -3, -5}, 50) == Tokens{1});
    CHECK(tokens_drawn({temperature, 0, 1}, {5}, 5) == Tokens{0});
  }
  CHECK(tokens_drawn({1, 1, 1}, {0, 3, 1, 3}, 50) == Tokens{1});
  CHECK(tokens_drawn({1, 0, 0}, {0, 3, 1, 3}, 50) == Tokens{1});
}

TEST_CASE("top-k at its ends") {
  const std::vector<double> logits = {1, 1.1, 1.2, 1.3};
  CHECK(tokens_drawn({1, 0, 1}, logits) == Tokens{0, 1, 2, 3});
  CHECK(tokens_drawn({1, 2, 1}, logits) == Tokens{2, 3});
  CHECK(tokens_drawn({1, 4, 1}, logits) == Tokens{0, 1, 2, 3});
  CHECK(tokens_drawn({1, 5, 1}, logits) == Tokens{0, 1, 2, 3});
  CHECK(tokens_drawn({1, std::numeric_limits<int64_t>::max(), 1}, logits) == Tokens{0, 1, 2, 3});
  CHECK(tokens_drawn({1, 2, 1}, {1, 1, 1, 1}) == Tokens{0, 1});
}

TEST_CASE("cut tokens never win, all logits negative or not") {
  std::vector<double> logits;
  for (int i = 0; i < 100; ++i) {
    logits.push_back(-5.0 - i);
  }
  CHECK(tokens_drawn({1, 2, 1}, logits, 10'000) == Tokens{0, 1});
  CHECK(tokens_drawn({1, 0, 0.7}, logits, 10'000) == Tokens{0, 1});  // p = 0.632, 0.233, ...
}

TEST_CASE("top-p keeps the fewest tokens that together exceed p") {
  const std::vector<double> logits = {std::log(0.5), std::log(0.25), std::log(0.15), std::log(0.1)};
  CHECK(tokens_drawn({1, 0, 1e-9}, logits) == Tokens{0});
  CHECK(tokens_drawn({1, 0, 0.49}, logits) == Tokens{0});
  CHECK(tokens_drawn({1, 0, 0.51}, logits) == Tokens{0, 1});
  CHECK(tokens_drawn({1, 0, 0.76}, logits) == Tokens{0, 1, 2});
  CHECK(tokens_drawn({1, 0, 0.91}, logits) == Tokens{0, 1, 2, 3});
  CHECK(tokens_drawn({1, 0, std::nextafter(1.0, 0.0)}, logits) == Tokens{0, 1, 2, 3});
  const std::vector<double> p = distribution({1, 0, 0.51}, logits);
  CHECK(std::fabs(p[0] - 2.0 / 3) < 1e-12);
  CHECK(std::fabs(p[1] - 1.0 / 3) < 1e-12);
  // After top-k 2 the first token holds two thirds of what is left.
  CHECK(tokens_drawn({1, 2, 0.6}, logits) == Tokens{0});
}

TEST_CASE("extreme distributions leave a token to draw") {
  CHECK(tokens_drawn({1, 0, 0.01}, {50, 0, 0, 0}, 100) == Tokens{0});
  CHECK(tokens_drawn({1, 0, 1e-6}, std::vector<double>(64, 3.0), 100) == Tokens{0});
  CHECK(tokens_drawn({1, 0, 1}, {1e30, 0, -1e30}, 100) == Tokens{0});
  CHECK(tokens_drawn({1e300, 0, 1}, {3, 0, -3}) == Tokens{0, 1, 2});
  CHECK(tokens_drawn({1, 0, 1}, {-infinity, 0, -infinity}, 100) == Tokens{1});
  CHECK(tokens_drawn({1, 3, 0.9}, {-infinity, 0, -infinity}, 100) == Tokens{1});
}

TEST_CASE("float and double logits give the same tokens, a seed gives the same again, another seed others") {
  std::vector<double> wide;
  std::vector<float> narrow;
  for (int i = 0; i < 300; ++i) {
    narrow.push_back(static_cast<float>(std::sin(i)));
    wide.push_back(static_cast<double>(narrow.back()));
  }
  const auto run = [&](uint64_t seed, bool use_float) {
    Sampler sampler({0.8, 50, 0.9}, seed);
    std::vector<int32_t> tokens;
    for (int i = 0; i < 50; ++i) {
      tokens.push_back(use_float ? sampler.next(narrow.data(), 300) : sampler.next(wide.data(), 300));
    }
    return tokens;
  };
  CHECK(run(7, false) == run(7, false));
  CHECK(run(7, false) == run(7, true));
  CHECK(run(7, false) != run(8, false));
}

TEST_CASE("options out of range are refused by name") {
  for (const double wrong : {-1.0, -1e-30, infinity, not_a_number}) {
    check_refused({wrong, 0, 1}, "--temperature");
  }
  check_refused({1, -1, 1}, "--top-k");
  for (const double wrong : {-0.1, 1.1, not_a_number, infinity}) {
    check_refused({1, 0, wrong}, "--top-p");
  }
}

TEST_CASE("logits of a diverged model are an error, in greedy mode too") {
  for (const double temperature : {0.0, 1.0}) {
    Sampler sampler({temperature, 0, 1}, 1);
    for (const std::vector<double>& logits :
         {std::vector<double>{0, not_a_number}, std::vector<double>{not_a_number, 0}, std::vector<double>{0, infinity},
          std::vector<double>{-infinity, -infinity}}) {
      try {
        sampler.next(logits.data(), 2);
        FAIL("a token was drawn");
      } catch (const Error& error) {
        CHECK(error.fault() == Fault::work);
      }
    }
  }
}
