#include "train/suite_file.h"

#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

#include <doctest/doctest.h>

using namespace minillm;
using namespace minillm::test;

namespace {

std::string suite_in(const TemporaryFolder& folder, const std::string& text) {
  const std::string path = folder / "suite.toml";
  write_file(path, text);
  return path;
}

}  // namespace

TEST_CASE("runs, grid and seeds multiply, and settings stand in the order of their rank") {
  TemporaryFolder folder;
  const std::string path = suite_in(folder, R"(
base = "configs/base.toml"
seeds = [1, 2]
steps = 40
set = ["train.eval_every=10"]
noise_floor = "../noise/records"

[[run]]
name = "pre"

[[run]]
name = "post"
base = "configs/post.toml"
set = ["model.norm_position=post"]
seeds = [7]
match = "pre"

[grid]
"optim.lr" = [1e-3, 3e-3]
"optim.schedule" = ["cosine"]
)");
  const Suite suite = load_suite(path, {"train.threads=1"}, false);
  REQUIRE(suite.variants.size() == 4);
  const Variant& pre = suite.variants[0];
  CHECK(pre.name == "pre-lr=0.001-schedule=cosine");
  CHECK(pre.reference == pre.name);
  CHECK(pre.seeds == std::vector<uint64_t>{1, 2});
  CHECK(pre.match.empty());
  CHECK(pre.base == folder / "configs/base.toml");
  const Variant& post = suite.variants[3];
  CHECK(post.name == "post-lr=0.003-schedule=cosine");
  CHECK(post.run == "post");
  CHECK(post.reference == "pre-lr=0.003-schedule=cosine");
  CHECK(post.match == "pre-lr=0.003-schedule=cosine");
  CHECK(post.seeds == std::vector<uint64_t>{7});
  CHECK(post.base == folder / "configs/post.toml");
  CHECK(post.overrides == std::vector<std::string>{"train.steps=40", "train.eval_every=10", "model.norm_position=post",
                                                   "optim.lr=0.003", "optim.schedule=cosine", "train.threads=1"});
  CHECK(suite.name == std::filesystem::path(folder.path()).filename().string());
}

TEST_CASE("a quick suite has a quarter of the steps, or what [quick] says") {
  TemporaryFolder folder;
  const std::string runs = "base = \"a.toml\"\nsteps = 40\nseeds = [1, 2, 3]\n[[run]]\nname = \"a\"\nseeds = [9]\n";
  const Suite quarter = load_suite(suite_in(folder, runs), {}, true);
  CHECK(quarter.variants[0].overrides == std::vector<std::string>{"train.steps=10"});
  CHECK(quarter.variants[0].seeds == std::vector<uint64_t>{9});
  const std::string table = "[quick]\nsteps = 4\nseeds = [2]\nset = [\"optim.warmup_steps=1\"]\n";
  const Suite quick = load_suite(suite_in(folder, runs + table), {}, true);
  CHECK(quick.variants[0].overrides == std::vector<std::string>{"train.steps=4", "optim.warmup_steps=1"});
  CHECK(quick.variants[0].seeds == std::vector<uint64_t>{9});  // a run's own stay
  CHECK(contains(
      message_of([&] { load_suite(suite_in(folder, "base = \"a.toml\"\n[[run]]\nname = \"a\"\n"), {}, true); }),
      "--quick needs steps to shorten"));
  const Suite whole = load_suite(suite_in(folder, runs + table), {}, false);
  CHECK(whole.variants[0].overrides == std::vector<std::string>{"train.steps=40"});
}

TEST_CASE("what is wrong with a suite is told with its line") {
  TemporaryFolder folder;
  const std::string base = "base = \"a.toml\"\n";
  const std::string run = "[[run]]\nname = \"a\"\n";
  const struct {
    std::string text;
    std::string message;
  } rows[] = {
      {base, ": a suite has no runs; expected [[run]] with a name"},
      {run, ":1: a run has no config; expected base = \"config.toml\""},
      {"bse = 1\n" + base + run, ":1: unknown key bse of a suite; did you mean base?"},
      {base + "seeds = [1, 1]\n" + run,
       ":2: seeds: wrong type; found an array; expected an array of different whole numbers: [1, 2, 3]"},
      {base + "steps = 0\n" + run, ":2: steps: wrong type; found 0; expected a whole number, at least 1"},
      {base + run + "nmae = 1\n", ":4: unknown key nmae of a run; did you mean name?"},
      {base + run + run, ":4: two runs have one name; found a"},
      {base + run + "match = \"zzz\"\n", ":2: no run has this name; found zzz; the runs are a"},
      {base + run + "match = \"a\"\n", ":2: a run can match only one that matches no other; found a"},
      {base + "[[run]]\nname = \"a/b\"\n",
       ":2: a run's name becomes a folder's; found a/b; expected letters, digits, "
       "_ and -"},
      {base + run + "[grid]\n\"optim.lr\" = 1\n",
       ":5: optim.lr: wrong type; found 1; expected an array of values: \"optim.lr\" = [1e-3, 3e-3]"},
      {base + "set = \"a.b=1\"\n" + run,
       ":2: set: wrong type; found the string \"a.b=1\"; expected an array of settings: [\"model.norm=layernorm\"]"},
      {base + run + "[grid]\n\"a.b\" = [\"x y\"]\n", ":5: a.b: wrong type"},
      {base + run + "[grid]\n\"a.b\" = [1e-3, 0.001]\n", ": two variants have one name; found a-b=0.001"},
      {base + run + "[quick]\nstpes = 1\n", ":5: unknown key stpes of a [quick]; did you mean steps?"},
      {"base = \n", ":1: not valid TOML"},
  };
  for (const auto& row : rows) {
    const std::string path = suite_in(folder, row.text);
    const std::string message = message_of([&] { load_suite(path, {}, false); });
    CHECK_MESSAGE(message.rfind(path + row.message, 0) == 0, message);
  }
  CHECK(message_of([&] { load_suite(folder / "none.toml", {}, false); }) ==
        (folder / "none.toml") + ": cannot read the suite: No such file or directory");
}
