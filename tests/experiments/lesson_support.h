#pragma once
// What tests of lessons share: running one, and comparing lists of numbers.

#include "core/parallel.h"
#include "experiments/lessons/lesson.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace minillm::test {

/// On one thread, as the program runs them.
inline Numbers numbers_of_lesson(std::string_view name) {
  set_num_threads(1);
  Page page(Language::en);
  return find_lesson(name).run(page);
}

/// |found - expected| <= share * |expected|. (doctest's Approx adds its share of 1 to that: too much for small
/// numbers.)
inline bool is_within(double found, double expected, double share) {
  return std::abs(found - expected) <= share * std::abs(expected);
}

/// Each within `tolerance` of what is expected.
inline void check_near(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    INFO("element ", i, ": found ", found[i], ", expected ", expected[i]);
    CHECK(std::abs(found[i] - expected[i]) <= tolerance);
  }
}

}  // namespace minillm::test
