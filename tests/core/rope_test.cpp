#include "core/kernels/rope.h"

#include "tests/core/qkv_support.h"

#include <doctest/doctest.h>

using namespace minillm;
using namespace minillm::kernels;

namespace {

struct Angles {
  std::vector<double> cosines;
  std::vector<double> sines;
};

Angles table_of(int64_t T, int64_t pairs, int64_t head_dim, double theta) {
  Angles table = {std::vector<double>(static_cast<size_t>(T * pairs)),
                  std::vector<double>(static_cast<size_t>(T * pairs))};
  rope_table(table.cosines.data(), table.sines.data(), T, pairs, head_dim, theta);
  return table;
}

double dot(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t j = 0; j < count; ++j) {
    sum += a[j] * b[j];
  }
  return sum;
}

}  // namespace

TEST_CASE("rope_pairs is floor(fraction * head_dim / 2) of the decimal fraction") {
  CHECK(rope_pairs(1.0, 32) == 16);
  CHECK(rope_pairs(0.5, 32) == 8);
  CHECK(rope_pairs(0.25, 20) == 2);
  CHECK(rope_pairs(0.58, 100) == 29);
  CHECK(rope_pairs(0.3, 20) == 3);
  CHECK(rope_pairs(0.01, 32) == 0);
}

TEST_CASE("the table holds cos and sin of pos * theta^(-2j / head_dim), also when only a part is rotated") {
  const int64_t T = 300;
  const int64_t pairs = 3;
  const int64_t head_dim = 16;
  const Angles table = table_of(T, pairs, head_dim, 500.0);
  std::vector<float> cosines(static_cast<size_t>(T * pairs));
  std::vector<float> sines(cosines.size());
  rope_table(cosines.data(), sines.data(), T, pairs, head_dim, 500.0);
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t j = 0; j < pairs; ++j) {
      const size_t i = static_cast<size_t>(t * pairs + j);
      const double angle = static_cast<double>(t) / std::exp(std::log(500.0) * static_cast<double>(j) / 8.0);
      CHECK(std::abs(table.cosines[i] - std::cos(angle)) < 1e-12);
      CHECK(std::abs(table.sines[i] - std::sin(angle)) < 1e-12);
      CHECK(cosines[i] == static_cast<float>(table.cosines[i]));
      CHECK(sines[i] == static_cast<float>(table.sines[i]));
    }
  }
}

TEST_CASE("element j turns with element j + pairs; what is not rotated passes") {
  const QkvLayout layout = {.n_heads = 1, .n_kv_heads = 1, .head_dim = 5, .gated = true};
  std::vector<double> x(static_cast<size_t>(layout.width()));
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<double>(i + 1);
  }
  // 90 and 0 degrees: the first pair (1, 3) becomes (-3, 1), the second (2, 4) stays.
  const std::vector<double> cosines = {0, 1};
  const std::vector<double> sines = {1, 0};
  std::vector<double> y(x.size());
  rope_forward_reference(x.data(), cosines.data(), sines.data(), y.data(), 1, 1, 2, layout);
  CHECK(y == std::vector<double>{-3, 2, 1, 4, 5, 6, 7, 8, 9, 10, -13, 12, 11, 14, 15, 16, 17, 18, 19, 20});
}

TEST_CASE("after rope the product of a query and a key depends on their distance alone") {
  const QkvLayout layout = {.n_heads = 2, .n_kv_heads = 1, .head_dim = 12};
  const int64_t T = 40;
  for (int64_t pairs : {6, 4}) {
    const Angles table = table_of(T, pairs, layout.head_dim, 10000.0);
    // The same row at every position.
    const std::vector<double> row = random_values(layout.width(), "row");
    std::vector<double> x;
    for (int64_t t = 0; t < T; ++t) {
      x.insert(x.end(), row.begin(), row.end());
    }
    std::vector<double> y(x.size());
    rope_forward_reference(x.data(), table.cosines.data(), table.sines.data(), y.data(), 1, T, pairs, layout);
    const auto product = [&](int64_t h, int64_t t, int64_t u) {
      return dot(y.data() + t * layout.width() + h * layout.head_dim, y.data() + u * layout.width() + layout.k_offset(),
                 layout.head_dim);
    };
    for (int64_t h : {0, 1}) {
      for (int64_t distance : {0, 1, 7}) {
        for (int64_t t = distance; t < T; ++t) {
          CHECK(product(h, t, t - distance) == doctest::Approx(product(h, distance, 0)).epsilon(1e-12));
        }
      }
      CHECK(std::abs(product(h, 7, 0) - product(h, 1, 0)) > 1e-3);
    }
  }
}

TEST_CASE("rope's backward is its transpose, and adds") {
  for (const QkvCase& test : qkv_cases()) {
    CAPTURE(test.name);
    const int64_t B = 2;
    const int64_t T = 9;
    const int64_t pairs = test.layout.head_dim / 2 - 1;
    const Angles table = table_of(T, pairs, test.layout.head_dim, 100.0);
    const std::vector<double> x = random_values(B * T * test.layout.width(), "x");
    const std::vector<double> dy = random_values(B * T * test.layout.width(), "dy");
    std::vector<double> y(x.size());
    std::vector<double> dx(x.size(), 1.0);
    rope_forward_reference(x.data(), table.cosines.data(), table.sines.data(), y.data(), B, T, pairs, test.layout);
    rope_backward_reference(dy.data(), table.cosines.data(), table.sines.data(), dx.data(), B, T, pairs, test.layout);
    for (double& value : dx) {
      value -= 1;
    }
    const int64_t count = static_cast<int64_t>(x.size());
    CHECK(dot(dy.data(), y.data(), count) == doctest::Approx(dot(dx.data(), x.data(), count)).epsilon(1e-11));
    CHECK(dot(y.data(), y.data(), count) == doctest::Approx(dot(x.data(), x.data(), count)).epsilon(1e-11));
  }
}

TEST_CASE("fast rope has the reference's bits, for any number of threads") {
  for (const QkvCase& test : qkv_cases()) {
    CAPTURE(test.name);
    const int64_t B = 2;
    const int64_t T = 37;
    const int64_t pairs = test.layout.head_dim / 2 - 1;
    const Angles table = table_of(T, pairs, test.layout.head_dim, 10000.0);
    const std::vector<float> cosines = to_float(table.cosines);
    const std::vector<float> sines = to_float(table.sines);
    const std::vector<float> x = to_float(random_values(B * T * test.layout.width(), "x"));
    std::vector<float> y(x.size());
    std::vector<float> dx(x.size());
    rope_forward_reference(x.data(), cosines.data(), sines.data(), y.data(), B, T, pairs, test.layout);
    rope_backward_reference(x.data(), cosines.data(), sines.data(), dx.data(), B, T, pairs, test.layout);
    for (int count : {1, 2, 3, 4}) {
      Threads threads(count);
      std::vector<float> fast_y(x.size());
      std::vector<float> fast_dx(x.size());
      rope_forward(x.data(), cosines.data(), sines.data(), fast_y.data(), B, T, pairs, test.layout);
      rope_backward(x.data(), cosines.data(), sines.data(), fast_dx.data(), B, T, pairs, test.layout, false);
      CHECK(fast_y == y);
      CHECK(fast_dx == dx);
      std::vector<float> fresh_dx(x.size(), std::nanf(""));
      rope_backward(x.data(), cosines.data(), sines.data(), fresh_dx.data(), B, T, pairs, test.layout, true);
      CHECK(fresh_dx == dx);
    }
  }
}
