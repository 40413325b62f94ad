// Numbers in fewer bytes: nearest, ties to even, at the ends of the range; blocks that share a scale.

#include "formats/weight_type.h"

#include "core/half.h"
#include "core/rng.h"
#include "tests/small_model.h"
#include "tests/support/message_of.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace minillm;

TEST_CASE("every binary16 is its own nearest, and a float between two goes to the nearer, of a tie to the even one") {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {  // positive and finite
    const auto low = static_cast<uint16_t>(bits);
    const auto high = static_cast<uint16_t>(bits + 1);
    const float value = half_to_float(low);
    REQUIRE(float_to_half(value) == low);
    REQUIRE(float_to_half(-value) == (low | 0x8000));
    const float next = bits + 1 == 0x7c00 ? 65536.0F : half_to_float(high);
    const float middle = value + (next - value) / 2;  // exact in float
    REQUIRE(float_to_half(middle) == (low % 2 == 0 ? low : high));
    REQUIRE(float_to_half(std::nextafter(middle, 0.0F)) == low);
    REQUIRE(float_to_half(std::nextafter(middle, 1e9F)) == high);
  }
  CHECK(float_to_half(1e9F) == 0x7c00);
  CHECK(float_to_half(-std::numeric_limits<float>::infinity()) == 0xfc00);
  CHECK(std::isnan(half_to_float(float_to_half(std::numeric_limits<float>::quiet_NaN()))));
}

TEST_CASE("a block of q8_0 is off by half a step at most, and rounding again changes nothing") {
  RandomStream random(random_key(2, "q8_0"));
  const WeightType& type = weight_type("q8_0");
  for (const float size : {1e-6F, 1.0F, 1000.0F}) {
    std::vector<float> values(32 * 50);
    for (float& value : values) {
      value = size * static_cast<float>(random.normal());
    }
    std::fill_n(values.begin(), 32, 0.0F);
    std::vector<float> rounded = values;
    type.round(rounded);
    for (size_t i = 0; i < values.size(); ++i) {
      const auto block = values.begin() + static_cast<std::ptrdiff_t>(i / 32 * 32);
      const auto by_size = [](float a, float b) { return std::abs(a) < std::abs(b); };
      const float step = std::abs(*std::max_element(block, block + 32, by_size)) / 127;
      // The scale itself is rounded: 2^-11 of it, or half of the smallest subnormal.
      const float bound = step / 2 + std::max(127 * step * 0x1p-11F, 127 * 0x1p-25F);
      CHECK(std::abs(rounded[i] - values[i]) <= bound);
    }
    std::vector<float> again = rounded;
    type.round(again);
    CHECK(again == rounded);
    CHECK(type.encode(values).size() == 50 * type.block_bytes);
  }
}

TEST_CASE("types are found by name, and a number that is too large is refused by its tensor") {
  CHECK(weight_type("f16").gguf_type == 1);
  ModelConfig config = small_model(8, 32);
  derive(config, 0, 8);
  Transformer model(config);
  model.allocate(DType::float32, 1, false);
  const NamedTensor last = model.parameters().named_tensors().back();
  REQUIRE(last.value.shape.rank() == 1);
  last.value.set(0, 1e9);  // a vector stays float32
  CHECK_NOTHROW(round_matrices(model, weight_type("f16")));
  const NamedTensor first = model.parameters().named_tensors().front();
  first.value.set(0, 1e9);
  CHECK_CONTAINS(test::message_of([&] { round_matrices(model, weight_type("f16")); }),
                 std::string(first.name) + " has numbers that are too large for f16");
}
