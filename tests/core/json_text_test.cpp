#include "core/json_text.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>

using namespace minillm;

TEST_CASE("a number is the shortest text that reads back, or null") {
  CHECK(json_number(0.1) == "0.1");
  CHECK(json_number(5e-324) == "5e-324");
  CHECK(json_number(std::nan("")) == "null");
  CHECK(json_number(-HUGE_VAL) == "null");
}

TEST_CASE("any bytes make a valid string") {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all += static_cast<char>(byte);
    all += "a";
  }
  const nlohmann::json read = nlohmann::json::parse(json_string(all));
  CHECK(read.get<std::string>().substr(0, 256) == all.substr(0, 256));  // ASCII as it stands
  CHECK(json_string("a\"\\\n\x01") == R"("a\"\\\n\u0001")");
  CHECK(json_string("模\xff") == "\"模\xef\xbf\xbd\"");
}
