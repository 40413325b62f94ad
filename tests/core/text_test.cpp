#include "core/text.h"

#include <doctest/doctest.h>

#include <cmath>

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

TEST_CASE("bytes and durations") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(999) == "999 B");
  CHECK(bytes_text(1000) == "1.00 kB");
  CHECK(bytes_text(44264448) == "44.3 MB");
  CHECK(bytes_text(999'600) == "1.00 MB");
  CHECK(bytes_text(123.4e9) == "123 GB");
  CHECK(duration_text(0) == "0:00");
  CHECK(duration_text(59.6) == "1:00");
  CHECK(duration_text(62) == "1:02");
  CHECK(duration_text(3723) == "1:02:03");
  CHECK(duration_text(-1) == "-");
  CHECK(duration_text(NAN) == "-");
  CHECK(duration_text(INFINITY) == "-");
}

TEST_CASE("text from outside cannot steer a terminal") {
  CHECK(printable("model.weight") == "model.weight");
  CHECK(printable("a\x1b[31m\n\x7f") == "a\\x1b[31m\\x0a\\x7f");
  CHECK(printable("模型") == "模型");
  CHECK(printable("abcdef", 3) == "abc...");
  CHECK(printable("") == "\"\"");
  CHECK(without_controls("a\x1b[31m\n\tb\r\x7f模型") == "a\\x1b[31m\n\tb\\x0d\\x7f模型");
}

TEST_CASE("a word goes through a shell unchanged") {
  CHECK(shell_word("runs/gpt2-124M_a.b,c:d=e+f@g%h") == "runs/gpt2-124M_a.b,c:d=e+f@g%h");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("-dash") == "./-dash");
  CHECK(shell_word("--a b") == "'./--a b'");
  CHECK(shell_word("a b") == "'a b'");
  CHECK(shell_word("it's $HOME") == "'it'\\''s $HOME'");
  CHECK(shell_word("~/模型") == "'~/模型'");
}
