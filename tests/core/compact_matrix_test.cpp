// Products with matrices in fewer bytes: of the numbers they hold, near those they were made of, the same for any
// number of threads.

#include "core/kernels/compact_matrix.h"

#include "core/parallel.h"
#include "core/rng.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace minillm;
using namespace minillm::kernels;

namespace {

std::vector<float> draws(int64_t count, const char* name) {
  RandomStream random(random_key(11, name));
  std::vector<float> values(static_cast<size_t>(count));
  std::generate(values.begin(), values.end(), [&] { return static_cast<float>(random.normal()); });
  return values;
}

std::vector<float> expanded(const CompactMatrix& matrix) {
  std::vector<float> values(static_cast<size_t>(matrix.rows() * matrix.columns()));
  matrix.expand(values.data());
  return values;
}

}  // namespace

TEST_CASE("a compact product is that of the numbers the matrix holds") {
  for (const CompactType type : {CompactType::bf16, CompactType::int8}) {
    for (const int64_t columns : {1, 15, 64, 65, 700}) {
      for (const int64_t rows : {1, 7, 300}) {
        CAPTURE(columns);
        CAPTURE(rows);
        const std::vector<float> values = draws(rows * columns, "matrix");
        const std::vector<float> x = draws(columns, "x");
        const CompactMatrix matrix(type, values.data(), rows, columns);
        const std::vector<float> held = expanded(matrix);
        std::vector<float> y(static_cast<size_t>(rows), NAN);
        matrix.multiply(x.data(), y.data());
        for (int64_t r = 0; r < rows; ++r) {
          double expected = 0;
          double size = 0;
          for (int64_t k = 0; k < columns; ++k) {
            const double term = static_cast<double>(held[static_cast<size_t>(r * columns + k)]) *
                                static_cast<double>(x[static_cast<size_t>(k)]);
            expected += term;
            size += std::abs(term);
          }
          CHECK(std::abs(static_cast<double>(y[static_cast<size_t>(r)]) - expected) <= 1e-6 * size);
        }
      }
    }
  }
}

TEST_CASE("what a compact matrix holds is near: half a step of a group, 2^-8 of a number") {
  constexpr int64_t columns = 130;
  std::vector<float> values = draws(4 * columns, "matrix");
  std::fill_n(values.begin(), columns, 0.0F);
  const CompactMatrix codes(CompactType::int8, values.data(), 4, columns);
  const CompactMatrix halves(CompactType::bf16, values.data(), 4, columns);
  const std::vector<float> by_codes = expanded(codes);
  const std::vector<float> by_halves = expanded(halves);
  for (int64_t i = 0; i < 4 * columns; ++i) {
    const int64_t first = i / columns * columns + i % columns / 64 * 64;
    const int64_t last = std::min(first + 64, i / columns * columns + columns);
    float largest = 0;
    for (int64_t k = first; k < last; ++k) {
      largest = std::max(largest, std::abs(values[static_cast<size_t>(k)]));
    }
    const auto at = static_cast<size_t>(i);
    CHECK(std::abs(by_codes[at] - values[at]) <= 1.0001F * largest / 127 / 2);
    CHECK(std::abs(by_halves[at] - values[at]) <= 0x1p-8F * std::abs(values[at]));
  }
  CHECK(codes.bytes() == 4 * (3 * 64 + 3 * sizeof(float)));
  CHECK(halves.bytes() == 4 * columns * 2);
  CHECK(expanded(CompactMatrix(CompactType::bf16, by_halves.data(), 4, columns)) == by_halves);
}

TEST_CASE("compact products have the same bits for 1, 2, 3 and 4 threads") {
  const std::vector<float> values = draws(2000 * 256, "matrix");
  const std::vector<float> x = draws(256, "x");
  const int before = num_threads();
  for (const CompactType type : {CompactType::bf16, CompactType::int8}) {
    const CompactMatrix matrix(type, values.data(), 2000, 256);
    std::vector<float> first(2000);
    for (const int threads : {1, 2, 3, 4}) {
      set_num_threads(threads);
      std::vector<float> y(2000);
      matrix.multiply(x.data(), y.data());
      first = threads == 1 ? y : first;
      CHECK(y == first);
    }
  }
  set_num_threads(before);
}
