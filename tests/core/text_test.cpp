#include "core/text.h"

#include <doctest/doctest.h>

using namespace minillm;

TEST_CASE("edit distance counts insertions, deletions, substitutions and swaps of neighbours") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("steps", "stpes") == 1);
  CHECK(edit_distance("ca", "abc") == 3);  // optimal string alignment; unrestricted Damerau-Levenshtein gives 2
  CHECK(edit_distance("Top-P", "top_p") == 0);
}

TEST_CASE("nearest finds likely misspellings and nothing else") {
  const std::vector<std::string> keys = {"lr", "min_lr_ratio", "warmup_steps", "schedule", "weight_decay", "grad_clip"};
  CHECK(nearest("warmup_step", keys) == "warmup_steps");
  CHECK(nearest("warmup-stpes", keys) == "warmup_steps");
  CHECK(nearest("scheduler", keys) == "schedule");
  CHECK(nearest("lrr", keys) == "lr");
  CHECK(nearest("warmup", keys) == "warmup_steps");
  CHECK(nearest("min_lr", keys) == "min_lr_ratio");
  CHECK(nearest("zzz", keys).empty());
  CHECK(nearest("dropout", keys).empty());
  CHECK(nearest("anything", {}).empty());
  CHECK(nearest("ab", {"aa", "bb"}) == "aa");
  CHECK(did_you_mean("grad_clp", keys) == "did you mean grad_clip?");
  CHECK(did_you_mean("zzz", keys).empty());
}

TEST_CASE("lists and thousands") {
  CHECK(join({}) == "");
  CHECK(join({"a", "b", "c"}) == "a, b, c");
  CHECK(join({"a", "a"}, "/") == "a/a");
  CHECK(thousands(0) == "0");
  CHECK(thousands(999) == "999");
  CHECK(thousands(1000) == "1,000");
  CHECK(thousands(3688704) == "3,688,704");
  CHECK(thousands(-100) == "-100");
  CHECK(thousands(-1234567) == "-1,234,567");
  CHECK(thousands(INT64_MIN) == "-9,223,372,036,854,775,808");
}
