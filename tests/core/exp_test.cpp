#include "core/kernels/exp.h"

#include "core/kernels/simd.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace minillm;
using namespace minillm::kernels;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

MINILLM_SIMD void exp_all(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    y[i] = fast_exp(x[i]);
  }
}

/// Floats of [low, high], a fixed number of representable values apart.
std::vector<float> sample(float low, float high, uint32_t step) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += step) {
    const auto word = static_cast<uint32_t>(bits);
    float value;
    std::memcpy(&value, &word, sizeof value);
    if (value >= low && value <= high) {
      x.push_back(value);
    }
  }
  return x;
}

}  // namespace

TEST_CASE("fast_exp is within 1.05 units in the last place wherever the result is a normal number") {
  const std::vector<float> x = sample(-87.33654F, 88.72283F, 1009);
  REQUIRE(x.size() > 1000000);
  std::vector<float> y(x.size());
  exp_all(x.data(), y.data(), static_cast<int64_t>(x.size()));
  double worst = 0;
  float worst_x = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(static_cast<double>(x[i]));
    const double unit = std::ldexp(1.0, std::ilogb(exact) - 23);
    const double error = std::abs(static_cast<double>(y[i]) - exact) / unit;
    if (!(error <= worst)) {
      worst = error;
      worst_x = x[i];
    }
  }
  MESSAGE("largest error: ", worst, " ulp, at ", worst_x);
  CHECK(worst < 1.05);
}

TEST_CASE("fast_exp is the same in a vectorised loop and alone, whatever the position in the loop") {
  const std::vector<float> x = sample(-100, 100, 1000003);
  std::vector<float> y(x.size());
  for (int64_t start = 0; start < 17; ++start) {
    exp_all(x.data() + start, y.data() + start, static_cast<int64_t>(x.size()) - start);
    for (size_t i = static_cast<size_t>(start); i < x.size(); ++i) {
      CHECK(y[i] == fast_exp(x[i]));
    }
  }
}

TEST_CASE("fast_exp at the edges") {
  CHECK(fast_exp(0.0F) == 1.0F);
  CHECK(fast_exp(-0.0F) == 1.0F);
  CHECK(fast_exp(-87.3365402F) > 0.0F);
  CHECK(fast_exp(-87.3365479F) == 0.0F);
  CHECK(fast_exp(-1e4F) == 0.0F);
  CHECK(fast_exp(std::numeric_limits<float>::lowest()) == 0.0F);
  CHECK(fast_exp(-infinity) == 0.0F);
  CHECK(std::isfinite(fast_exp(88.7228317F)));
  CHECK(fast_exp(88.7228394F) == infinity);
  CHECK(fast_exp(infinity) == infinity);
  CHECK(std::isnan(fast_exp(std::numeric_limits<float>::quiet_NaN())));
  CHECK(std::isnan(fast_exp(-std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("fast_sigmoid stays within [0, 1] and close to the exact value") {
  for (float x : sample(-200, 200, 1000003)) {
    const double exact = 1 / (1 + std::exp(-static_cast<double>(x)));
    const float y = fast_sigmoid(x);
    CHECK(y >= 0.0F);
    CHECK(y <= 1.0F);
    CHECK(std::abs(static_cast<double>(y) - exact) <= 3e-7 * exact + 1e-38);
  }
  CHECK(fast_sigmoid(-infinity) == 0.0F);
  CHECK(fast_sigmoid(infinity) == 1.0F);
}
