// The formulas of tests/golden/golden_weights.h give the bits that torch_golden.py wrote.

#include "tests/golden/golden_weights.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <fstream>
#include <string>

using nlohmann::json;

TEST_CASE("golden weights: the C++ formula equals the Python one bit for bit") {
  std::ifstream file(MINILLM_SOURCE_DIR "/tests/golden/torch_curves.json");
  REQUIRE(file.good());
  const json golden = json::parse(file);

  REQUIRE(golden["formula_samples"].size() == 8);
  for (const json& sample : golden["formula_samples"]) {
    const std::string name = sample[0];
    CAPTURE(name);
    CHECK(minillm::golden::value(name, sample[1].get<uint64_t>(), sample[2].get<bool>()) == sample[3].get<double>());
  }
  // Once in this file too, so that a wrong golden file and a wrong formula cannot agree.
  CHECK(minillm::golden::value("model.embed_tokens.weight", 0, false) == -0.03566903993487358);
  CHECK(minillm::golden::value("model.norm.weight", 0, false) == 0.8871719837188721);
  CHECK(minillm::golden::value("model.norm.weight", 0, true) == -0.11282804608345032);
}

TEST_CASE("golden tokens: the C++ formula equals the Python one") {
  std::ifstream file(MINILLM_SOURCE_DIR "/tests/golden/torch_curves.json");
  REQUIRE(file.good());
  const json tokens = json::parse(file)["tokens"];
  auto index = tokens["train_first"].get<int64_t>();
  for (const json& expected : tokens["first"]) {
    CHECK(minillm::golden::token(index) == expected.get<int32_t>());
    ++index;
  }
  index = tokens["val_first"].get<int64_t>();
  for (const json& expected : tokens["val"]) {
    CHECK(minillm::golden::token(index) == expected.get<int32_t>());
    ++index;
  }
  CHECK(index == 10020);
}
