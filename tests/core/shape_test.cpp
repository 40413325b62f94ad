#include "core/shape.h"
#include "core/error.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace minillm;

TEST_CASE("a shape knows its rank, elements and axes") {
  const Shape shape = {4, 256, 2048};
  CHECK(shape.rank() == 3);
  CHECK(shape.numel() == 4 * 256 * 2048);
  CHECK(shape[0] == 4);
  CHECK(shape[-1] == 2048);
  CHECK(to_string(shape) == "[4, 256, 2048]");
  CHECK(Shape{}.numel() == 1);
  CHECK(to_string(Shape{}) == "[]");
  CHECK(Shape{3, 0, 2}.numel() == 0);
}

TEST_CASE("shapes compare by extents and rank") {
  CHECK(Shape{2, 3} == Shape{2, 3});
  CHECK_FALSE(Shape{2, 3} == Shape{3, 2});
  CHECK_FALSE(Shape{2, 3} == Shape{2, 3, 1});
  CHECK_FALSE(Shape{} == Shape{1});
}

TEST_CASE("wrong axes, extents and ranks are errors") {
  const Shape shape = {2, 3};
  CHECK_THROWS_AS(shape[2], Error);
  CHECK_THROWS_AS(shape[-3], Error);
  CHECK_THROWS_AS(Shape({-1}), Error);
  CHECK_THROWS_AS(Shape({1, 1, 1, 1, 1, 1, 1}), Error);
}

TEST_CASE("axes keep their order and fit a shape") {
  const Axes axes = {2, -1, 0};
  CHECK(axes.size() == 3);
  CHECK(axes[1] == -1);
  CHECK(std::equal(axes.begin(), axes.end(), std::initializer_list<int>{2, -1, 0}.begin()));
  CHECK_THROWS_AS(Axes({0, 0, 0, 0, 0, 0, 0}), Error);
}

TEST_CASE("broadcasting is right-aligned, as in NumPy") {
  CHECK(broadcast_shapes({2, 3, 4}, {4}) == Shape{2, 3, 4});
  CHECK(broadcast_shapes({3, 1}, {2, 1, 4}) == Shape{2, 3, 4});
  CHECK(broadcast_shapes({}, {5}) == Shape{5});
  CHECK(broadcast_shapes({1}, {0}) == Shape{0});
  CHECK(can_broadcast({2, 3}, {3}));
  CHECK_FALSE(can_broadcast({2, 3}, {2}));
  CHECK_THROWS_WITH_AS(broadcast_shapes({2, 3}, {2}), "shapes [2, 3] and [2] do not broadcast", Error);
}
