// Values of a config that go together, or do not; and what else is told once a file is read.

#include "train/config_checks.h"

#include "core/error.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"
#include "train/config_file.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <map>

using namespace minillm;
using namespace minillm::test;

namespace {

/// The message that an empty config with these settings gives; "" when it loads.
template <class... Settings>
std::string problem_of(const Settings&... settings) {
  return message_of([&] { parse_config("", "a.toml", {settings...}); });
}

}  // namespace

TEST_CASE("numbers are checked as the run's type holds them") {
  for (const auto& [setting, held] : std::map<std::string, std::string>{{"optim.lr=1e39", "inf"},
                                                                        {"optim.weight_decay=1e300", "inf"},
                                                                        {"optim.eps=4e38", "inf"},
                                                                        {"optim.grad_clip=1e39", "inf"},
                                                                        {"model.rope_theta=1e300", "inf"},
                                                                        {"optim.beta1=0.99999999", "1"},
                                                                        {"optim.beta2=0.999999999", "1"},
                                                                        {"model.dropout=0.99999999", "1"},
                                                                        {"model.rope_theta=1e-40", "0"}}) {
    const std::string key = setting.substr(0, setting.find('='));
    CHECK_CONTAINS(problem_of(setting), "command line: " + key + ": ");
    CHECK_CONTAINS(problem_of(setting), ", which float32 holds as " + held + "; expected ");
    CHECK(problem_of(setting, "train.dtype=float64") == "");
  }
  CHECK_CONTAINS(problem_of("model.norm_eps=4e38"), "found 4e+38; expected");
  CHECK(problem_of("optim.beta2=0.9999999") == "");
  CHECK(problem_of("optim.lr=3e38") == "");
  CHECK_FALSE(contains(problem_of("optim.lr=nan"), "holds as"));  // one problem, not two
  CHECK(config_notices(parse_config("", "a.toml", {"optim.lr=1e-50"}).config) ==
        std::vector<std::string>{"optim.lr 1e-50 is 0 in float32: the weights stay as they are"});
}

TEST_CASE("norm_eps has one range, whether the table of keys is asked or the model, in either type") {
  constexpr double smallest = std::numeric_limits<float>::min();
  constexpr double largest = std::numeric_limits<float>::max();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [number, expected] : std::map<double, bool>{{-1, false},
                                                               {1e-50, false},
                                                               {std::nextafter(smallest, 0), false},
                                                               {smallest, true},
                                                               {1e-6, true},
                                                               {largest, true},
                                                               {std::nextafter(largest, infinity), false},
                                                               {infinity, false}}) {
    const double value = number;  // a lambda of CAPTURE cannot hold a structured binding
    const bool is_right = expected;
    CAPTURE(value);
    Config config;
    CHECK(!assign(*find_key("model", "norm_eps"), config, {.value = value, .description = ""}) == is_right);
    ModelConfig model;
    model.vocab_size = 2;
    model.norm_eps = value;
    CHECK(derive_and_check(model, 0, 8).empty() == is_right);
    for (const std::string type : {"float32", "float64"}) {
      CHECK(problem_of(fmt::format("model.norm_eps={}", value), "train.dtype=" + type).empty() == is_right);
    }
  }
  CHECK(toml_text(*find_key("model", "norm_eps"), Config{}) == "");
}

TEST_CASE("a config that cannot be read is one problem") {
  CHECK(message_of([] { load_config("."); }) == ".: a folder, not a config file");
  CHECK_CONTAINS(message_of([] { load_config("", {"run.name=.."}); }), "cannot read the config");
}

TEST_CASE("overrides are applied by themselves, without comparing keys") {
  const Config config = parse_config("[train]\nbatch_size = 4\nmicro_batch_size = 4\n", "a.toml").config;
  CHECK(with_overrides(config, {"train.batch_size=2", "model.n_heads=3"}).train.batch_size == 2);
  CHECK(diff(config, with_overrides(config, {"train.batch_size=0x4", "optim.lr=0.001"})).empty());
  CHECK_CONTAINS(message_of([&] { with_overrides(config, {"train.batch_size=x"}); }), "train.batch_size: wrong type");
}

TEST_CASE("the files that were read are known") {
  const TemporaryFolder folder;
  folder.write("base.toml", "");
  const std::string path = folder.write("a.toml", "base = \"base.toml\"");
  CHECK(load_config(path).files == std::vector<std::string>{path, folder / "base.toml"});
}
