#include "core/json_object.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>

using namespace minillm;

TEST_CASE("an object reads back with another parser, its keys in order") {
  JsonObject inner;
  inner.add("name", "ffn");
  JsonObject object;
  object.add("loss", 0.1);
  object.add("small", 5e-324);
  object.add("whole", 3.0);
  object.add("nan", std::nan(""));
  object.add("infinity", HUGE_VAL);
  object.add("count", int64_t{3688704});
  object.add("seed", UINT64_MAX);
  object.add("ok", true);
  object.add("ids", std::vector<int32_t>{1, -2});
  object.add("none", std::vector<JsonObject>{});
  object.add("groups", std::vector<JsonObject>{inner, inner});
  object.add("inner", inner);
  object.add_null("nothing");
  CHECK(object.text() ==
        R"({"loss":0.1,"small":5e-324,"whole":3,"nan":null,"infinity":null,"count":3688704,)"
        R"("seed":18446744073709551615,"ok":true,"ids":[1,-2],"none":[],"groups":[{"name":"ffn"},{"name":"ffn"}],)"
        R"("inner":{"name":"ffn"},"nothing":null})");
  const nlohmann::json read = nlohmann::json::parse(object.text());
  CHECK(read["small"].get<double>() == 5e-324);
  CHECK(read["seed"].get<uint64_t>() == UINT64_MAX);
  CHECK(JsonObject().text() == "{}");
}
