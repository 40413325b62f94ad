#include "core/rng.h"
#include "core/error.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <vector>

using namespace minillm;

// The known-answer vectors that Random123 publishes for philox4x32-10 (kat_vectors).
TEST_CASE("Philox gives the published numbers") {
  using Words = std::array<uint32_t, 4>;
  CHECK(philox(0, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox(UINT64_MAX, UINT64_MAX, UINT64_MAX) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("keys differ by seed, purpose, name and where one ends and the next begins") {
  std::set<RandomKey> keys;
  keys.insert(random_key(1, "init", "a"));
  keys.insert(random_key(2, "init", "a"));
  keys.insert(random_key(1, "data", "a"));
  keys.insert(random_key(1, "init", "b"));
  keys.insert(random_key(1, "inita", ""));
  keys.insert(random_key(1, "ini", "ta"));
  keys.insert(random_key(random_key(1, "init", "a"), 0));
  keys.insert(random_key(random_key(1, "init", "a"), 1));
  CHECK(keys.size() == 8);
  CHECK(random_key(1, "init", "a") == random_key(1, "init", "a"));
}

TEST_CASE("a permutation visits every index once, whatever the size") {
  for (uint64_t size : {1U, 2U, 3U, 4U, 5U, 16U, 17U, 255U, 1000U, 4097U}) {
    CAPTURE(size);
    const Permutation permutation(random_key(7, "order"), size);
    std::vector<bool> seen(size, false);
    for (uint64_t i = 0; i < size; ++i) {
      const uint64_t place = permutation(i);
      REQUIRE(place < size);
      CHECK_FALSE(seen[place]);
      seen[place] = true;
    }
  }
  const Permutation permutation(1, 5);
  CHECK_THROWS_AS(permutation(5), Error);
}

TEST_CASE("permutations of different keys differ and are not the identity") {
  const Permutation one(random_key(1, "order"), 1000);
  const Permutation two(random_key(2, "order"), 1000);
  int equal = 0;
  int fixed = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    equal += one(i) == two(i) ? 1 : 0;
    fixed += one(i) == i ? 1 : 0;
  }
  CHECK(equal < 10);  // about one is expected of two random permutations
  CHECK(fixed < 10);
}

TEST_CASE("normal draws have the moments of a normal distribution") {
  RandomStream stream(random_key(3, "moments"));
  constexpr int count = 200000;
  double moments[5] = {};
  for (int i = 0; i < count; ++i) {
    const double x = stream.normal();
    double power = 1;
    for (double& moment : moments) {
      moment += power / count;
      power *= x;
    }
  }
  // Five standard errors: sqrt(var(x^k) / count) * 5, with var 1, 2, 15, 96.
  CHECK(std::abs(moments[1]) < 0.012);
  CHECK(std::abs(moments[2] - 1) < 0.016);
  CHECK(std::abs(moments[3]) < 0.044);
  CHECK(std::abs(moments[4] - 3) < 0.11);
}

TEST_CASE("uniform draws stay in [0, 1) and below(n) gives each value equally often") {
  RandomStream stream(random_key(4, "uniform"));
  double mean = 0;
  for (int i = 0; i < 100000; ++i) {
    const double u = stream.uniform();
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    mean += u / 100000;
  }
  CHECK(std::abs(mean - 0.5) < 0.005);
  int counts[7] = {};
  for (int i = 0; i < 70000; ++i) {
    ++counts[stream.below(7)];
  }
  for (int count : counts) {
    CHECK(std::abs(count - 10000) < 500);
  }
  CHECK_THROWS_AS(stream.below(0), Error);
}
