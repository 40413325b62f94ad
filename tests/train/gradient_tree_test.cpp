#include "train/gradient_tree.h"

#include <doctest/doctest.h>

#include <vector>

using namespace minillm;

namespace {

float leaf(int i) {
  return 1.0F / static_cast<float>(3 * i + 1);
}

/// The sum of leaves [begin, end) by halves at the largest power of two: the tree a binary counter builds.
float tree_sum(int begin, int end) {
  const int count = end - begin;
  if (count == 1) {
    return leaf(begin);
  }
  int left = 1;
  while (left * 2 < count) {
    left *= 2;
  }
  return tree_sum(begin, begin + left) + tree_sum(begin + left, end);
}

}  // namespace

TEST_CASE("micro-batch gradients are summed by a fixed binary tree") {
  GradientTree tree;
  Buffer gradient({3}, DType::float32);
  for (int count = 1; count <= 17; ++count) {
    for (int i = 0; i < count; ++i) {
      for (int j = 0; j < 3; ++j) {
        gradient.tensor().as<float>()[j] = leaf(i);
      }
      tree.add(gradient.tensor());
    }
    tree.finish(gradient.tensor());
    CAPTURE(count);
    CHECK(gradient.tensor().as<float>()[0] == tree_sum(0, count));
    CHECK(gradient.tensor().as<float>()[2] == tree_sum(0, count));
  }
}
