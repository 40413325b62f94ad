// Products with matrices in a decoder's forms: of the numbers they hold, near those they were made of, the same for any
// number of threads and every processor.

#include "core/kernels/decoding_matrix.h"

#include "core/kernels/gemm.h"
#include "core/kernels/gemm_panels.h"
#include "core/parallel.h"
#include "core/rng.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace minillm;
using namespace minillm::kernels;

namespace {

constexpr DecodingType types[] = {DecodingType::float32, DecodingType::bf16, DecodingType::int8};

std::vector<float> draws(int64_t count, const char* name) {
  RandomStream random(random_key(11, name));
  std::vector<float> values(static_cast<size_t>(count));
  std::generate(values.begin(), values.end(), [&] { return static_cast<float>(random.normal()); });
  return values;
}

template <class Matrix>
std::vector<float> expanded(const Matrix& matrix, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  matrix.expand(values.data());
  return values;
}

/// y [count, rows] = start + x [count, columns] M^T and the sum of the terms' sizes, in double.
struct Expected {
  std::vector<double> y;
  std::vector<double> size;
};

Expected multiply(const std::vector<float>& x, const std::vector<float>& M, const std::vector<float>& start,
                  int64_t count, int64_t rows, int64_t columns) {
  Expected expected;
  for (int64_t i = 0; i < count * rows; ++i) {
    double y = static_cast<double>(start[static_cast<size_t>(i)]);
    double size = std::abs(y);
    for (int64_t k = 0; k < columns; ++k) {
      const double term = static_cast<double>(M[static_cast<size_t>(i % rows * columns + k)]) *
                          static_cast<double>(x[static_cast<size_t>(i / rows * columns + k)]);
      y += term;
      size += std::abs(term);
    }
    expected.y.push_back(y);
    expected.size.push_back(size);
  }
  return expected;
}

/// What an int8 matrix makes of x.
std::vector<float> rounded_rows(const std::vector<float>& x, int64_t count, int64_t columns) {
  return expanded(Int8Matrix(x.data(), count, columns), count * columns);
}

}  // namespace

TEST_CASE("a product is that of the numbers the matrix holds, for few rows and many, added or not") {
  for (const DecodingType type : types) {
    for (const int64_t columns : {1, 15, 64, 65, 700}) {
      for (const int64_t rows : {1, 7, 300}) {
        for (const int64_t count : {1, 3}) {
          CAPTURE(static_cast<int>(type));
          CAPTURE(columns);
          CAPTURE(rows);
          CAPTURE(count);
          const std::vector<float> values = draws(rows * columns, "matrix");
          const std::vector<float> x = draws(count * columns, "x");
          const std::vector<float> start = draws(count * rows, "start");
          const std::vector<float> zero(start.size());
          const DecodingMatrix matrix(type, values.data(), rows, columns);
          const std::vector<float> held = expanded(matrix, rows * columns);
          CHECK((type != DecodingType::float32 || held == values));
          const std::vector<float> multiplied = type == DecodingType::int8 ? rounded_rows(x, count, columns) : x;
          for (const bool add : {false, true}) {
            const Expected expected = multiply(multiplied, held, add ? start : zero, count, rows, columns);
            std::vector<float> y = add ? start : std::vector<float>(start.size(), NAN);
            matrix.multiply(x.data(), count, y.data(), add);
            for (size_t i = 0; i < y.size(); ++i) {
              CHECK(std::abs(static_cast<double>(y[i]) - expected.y[i]) <= 2e-6 * expected.size[i]);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("products in float32 and bf16 have the bits of a product of many rows") {
  if (widest_panels() == nullptr) {
    return;  // oneDNN may round otherwise
  }
  constexpr int64_t rows = 300;
  constexpr int64_t columns = 700;
  constexpr int64_t count = 20;
  const std::vector<float> values = draws(rows * columns, "matrix");
  const std::vector<float> x = draws(count * columns, "x");
  for (const DecodingType type : {DecodingType::float32, DecodingType::bf16}) {
    const DecodingMatrix matrix(type, values.data(), rows, columns);
    const std::vector<float> held = expanded(matrix, rows * columns);
    std::vector<float> all(static_cast<size_t>(count * rows), 1.0F);
    std::vector<float> got = all;
    gemm({x.data(), columns, false}, {held.data(), columns, true}, {all.data(), rows}, count, rows, columns, 1.0);
    matrix.multiply(x.data(), count, got.data(), true);
    CHECK(got == all);
  }
}

TEST_CASE("what a matrix holds is near: half a step of a group, 2^-8 of a number") {
  constexpr int64_t columns = 130;
  std::vector<float> values = draws(4 * columns, "matrix");
  std::fill_n(values.begin(), columns, 0.0F);
  const DecodingMatrix codes(DecodingType::int8, values.data(), 4, columns);
  const DecodingMatrix halves(DecodingType::bf16, values.data(), 4, columns);
  const std::vector<float> by_codes = expanded(codes, 4 * columns);
  const std::vector<float> by_halves = expanded(halves, 4 * columns);
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
  CHECK(expanded(DecodingMatrix(DecodingType::bf16, by_halves.data(), 4, columns), 4 * columns) == by_halves);
}

TEST_CASE("int8 products have the same bits on every processor, with the largest codes too") {
  constexpr int64_t rows = 11;
  constexpr int64_t groups = 5;
  RandomStream random(random_key(5, "codes"));
  for (const bool largest : {false, true}) {
    std::vector<int8_t> codes(static_cast<size_t>(groups * int8_group));
    std::vector<uint8_t> shifted(static_cast<size_t>(rows * groups * int8_group));
    std::generate(codes.begin(), codes.end(),
                  [&] { return static_cast<int8_t>(largest ? -127 : static_cast<int>(random.below(255)) - 127); });
    std::generate(shifted.begin(), shifted.end(),
                  [&] { return static_cast<uint8_t>(largest ? 255 : 1 + random.below(255)); });
    std::vector<int32_t> starts(static_cast<size_t>(groups * 16));
    for (size_t i = 0; i < starts.size(); ++i) {
      starts[i] = -128 * (codes[4 * i] + codes[4 * i + 1] + codes[4 * i + 2] + codes[4 * i + 3]);
    }
    const std::vector<float> scales = draws(rows * groups, "scales");
    const std::vector<float> x_scales = draws(groups, "x scales");
    const Int8Row x = {codes.data(), x_scales.data(), starts.data(), groups};
    for (const bool add : {false, true}) {
      std::vector<float> widest(rows, 0.5F);
      std::vector<float> portable(rows, 0.5F);
      int8_products(shifted.data(), scales.data(), rows, x, widest.data(), add);
      int8_products_portable(shifted.data(), scales.data(), rows, x, portable.data(), add);
      CHECK(widest == portable);
    }
  }
}

TEST_CASE("int8: groups of zeros and of tiny numbers are zero, and what is not finite makes the result so") {
  constexpr int64_t columns = 3 * int8_group;
  std::vector<float> values = draws(columns, "matrix");
  std::fill_n(values.begin(), int8_group, 0.0F);
  std::fill_n(values.begin() + int8_group, int8_group, 1e-38F);
  const std::vector<float> held = expanded(Int8Matrix(values.data(), 1, columns), columns);
  CHECK(std::all_of(held.begin(), held.begin() + 2 * int8_group, [](float value) { return value == 0; }));
  const DecodingMatrix matrix(DecodingType::int8, values.data(), 1, columns);
  for (const float wrong : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> x(columns, 1.0F);
    x[130] = wrong;
    float y = 0;
    matrix.multiply(x.data(), 1, &y, false);
    CHECK(!std::isfinite(y));
  }
}

TEST_CASE("products have the same bits for 1, 2, 3 and 4 threads") {
  const std::vector<float> values = draws(2000 * 256, "matrix");
  const std::vector<float> x = draws(2 * 256, "x");
  const int before = num_threads();
  for (const DecodingType type : types) {
    const DecodingMatrix matrix(type, values.data(), 2000, 256);
    std::vector<float> first;
    for (const int threads : {1, 2, 3, 4}) {
      set_num_threads(threads);
      std::vector<float> y(2 * 2000);
      matrix.multiply(x.data(), 2, y.data(), false);
      first = threads == 1 ? y : first;
      CHECK(y == first);
    }
  }
  set_num_threads(before);
}
