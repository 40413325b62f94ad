#include "cli/options.h"

#include "core/error.h"
#include "tests/support/message_of.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace minillm;
using namespace minillm::cli;
using namespace minillm::test;
using Words = std::vector<std::string>;

namespace {

CommandSpec spec() {
  CommandSpec command;
  command.name = "train";
  command.words = "CONFIG.toml";
  command.min_words = 1;
  command.max_words = 1;
  command.overrides = true;
  command.options = {{"out", "DIR", "", "where to", true},
                     {"top-p", "P", "0.9", "share"},
                     {"seed", "S", "7", "seed"},
                     {"json", "", "", "as JSON"}};
  command.examples = {"minillm train a.toml"};
  return command;
}

std::string refusal(const Words& typed) {
  try {
    parse_arguments(spec(), typed);
    return "";
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::input);
    return error.what();
  }
}

}  // namespace

TEST_CASE("options come with values, with '=', or with their fallbacks") {
  const Arguments arguments = parse_arguments(spec(), {"a.toml", "--out", "runs/x", "--top-p=0.25", "--json"});
  CHECK(arguments.words() == Words{"a.toml"});
  CHECK(arguments.text("out") == "runs/x");
  CHECK(arguments.number("top-p") == 0.25);
  CHECK(arguments.integer("seed", 0) == 7);
  CHECK(arguments.given("json"));
  CHECK(arguments.given("out"));
  CHECK_FALSE(arguments.given("seed"));
  const Arguments bare = parse_arguments(spec(), {"a.toml"});
  CHECK(bare.number("top-p") == 0.9);
  CHECK(bare.text("out").empty());
  CHECK_FALSE(bare.given("json"));
  CHECK_THROWS_AS(bare.text("none"), Error);
  CHECK_THROWS_AS(bare.given("none"), Error);
}

TEST_CASE("values are taken as they stand: commas, line ends, dashes, nothing, 100,000 characters") {
  const std::string long_text(100'000, 'x');
  for (const std::string& text : {std::string("a,b,c"), std::string("one\ntwo"), std::string("-5"), std::string("a=b"),
                                  std::string("模型"), std::string("--unknown"), std::string(), long_text}) {
    CHECK(parse_arguments(spec(), {"a.toml", "--out", text}).text("out") == text);
    CHECK(parse_arguments(spec(), {"a.toml", "--out=" + text}).text("out") == text);
  }
  CHECK(parse_arguments(spec(), {"a.toml", "--out="}).given("out"));
  CHECK(parse_arguments(spec(), {"a.toml", "--out=--json"}).text("out") == "--json");
  CHECK(parse_arguments(spec(), {"a,b.toml"}).words() == Words{"a,b.toml"});
  CHECK(parse_arguments(spec(), {long_text}).words() == Words{long_text});
  CHECK(parse_arguments(spec(), {"-"}).words() == Words{"-"});
  CHECK(parse_arguments(spec(), {"--", "--json"}).words() == Words{"--json"});
}

TEST_CASE("settings are told from words") {
  const Arguments arguments =
      parse_arguments(spec(), {"optim.lr=3e-4", "a.toml", "model.norm=layernorm", "run.name='a, b=c'", "data.path="});
  CHECK(arguments.words() == Words{"a.toml"});
  CHECK(arguments.overrides() == Words{"optim.lr=3e-4", "model.norm=layernorm", "run.name='a, b=c'", "data.path="});
  CHECK(parse_arguments(spec(), {"dir.x/a=b.toml"}).words() == Words{"dir.x/a=b.toml"});
  CHECK(parse_arguments(spec(), {"a.toml", "lr=3"}).overrides() == Words{"lr=3"});  // for the loader to explain
  CommandSpec plain = spec();
  plain.overrides = false;
  CHECK(parse_arguments(plain, {"optim.lr=3e-4"}).words() == Words{"optim.lr=3e-4"});
}

TEST_CASE("what is wrong is named") {
  CHECK(contains(refusal({"a.toml", "b.toml"}), "unexpected word b.toml; expected section.key=value"));
  CHECK(contains(refusal({"a.toml", "--seed", ""}), "--seed needs a value; found \"\"; expected --seed S"));
  CHECK(contains(refusal({"a.toml", "--seed="}), "--seed needs a value; found \"\""));
  CHECK(contains(refusal({""}), "CONFIG.toml is missing; found \"\""));
  CHECK(contains(refusal({"a.toml", "--optim.lr=3"}), "settings have no dashes: optim.lr=3"));
  CHECK(contains(refusal({"a.toml", "--top_p", "1"}), "did you mean --top-p?"));
  CHECK(contains(refusal({"a.toml", "--json=yes"}), "--json is a switch"));
  CHECK(contains(refusal({"a.toml", "--seed"}), "--seed needs a value"));
  CHECK(contains(refusal({"a.toml", "--seed", "--json"}), "--seed needs a value; found --json"));
  CHECK(contains(refusal({"a.toml", "-x"}), "unknown option -x"));
  CHECK(contains(refusal({"a.toml", "--=x"}), "unknown option --"));
  CHECK(contains(refusal({}), "CONFIG.toml is missing; for example: minillm train a.toml"));
  for (const Words& typed :
       {Words{"--seed", "1", "a.toml", "--seed", "2"}, Words{"a.toml", "--seed=1", "--seed", "1"}}) {
    CHECK(refusal(typed) == "minillm train: --seed is given twice; leave one out");
  }
  CHECK(contains(refusal({"a.toml", "--json", "--json"}), "--json is given twice"));
  CHECK(refusal({"a.toml", "--out", "--seed", "--", "--seed"}).find("given twice") == std::string::npos);
  CHECK(refusal({"a.toml"}).empty());
}

TEST_CASE("numbers are read whole and in range") {
  const auto with = [](const std::string& seed) { return parse_arguments(spec(), {"a.toml", "--seed=" + seed}); };
  CHECK(with("9223372036854775807").integer("seed", 0) == INT64_MAX);
  CHECK(with("-3").integer("seed", -3) == -3);
  for (const char* wrong : {"1.0", "0x10", "+1", " 1", "1 ", "9223372036854775808", "one"}) {
    CHECK_THROWS_AS(with(wrong).integer("seed", 0), Error);
  }
  CHECK_THROWS_WITH_AS(with("5").integer("seed", 1, 4),
                       "--seed: the value is not a whole number in range; found 5; "
                       "expected from 1 to 4",
                       Error);
  CHECK(with("1e-3").number("seed") == 1e-3);
  CHECK(with("-.5").number("seed") == -0.5);
  CHECK(std::isnan(with("nan").number("seed")));
  for (const char* wrong : {"1,5", "1e", "0.5x"}) {
    CHECK_THROWS_AS(with(wrong).number("seed"), Error);
  }
}

TEST_CASE("help is asked for by --help and -h, not by a value") {
  CHECK(asks_for_help(spec(), {"--help"}));
  CHECK(asks_for_help(spec(), {"--nonsense", "-h"}));
  CHECK_FALSE(asks_for_help(spec(), {"--out", "--help"}));
  CHECK(asks_for_help(spec(), {"--out=x", "--help"}));
  CHECK_FALSE(asks_for_help(spec(), {"--", "--help"}));
  const std::string help = help_text(spec());
  CHECK(contains(help, "minillm train CONFIG.toml [section.key=value]... [OPTIONS]"));
  CHECK(contains(help, "--top-p P"));
  CHECK(contains(help, "(default: 0.9)"));
  CHECK(contains(help, "Example:\n  minillm train a.toml\n"));
}
