#include "core/terminal.h"

#include "core/error.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace minillm;

TEST_CASE("a table aligns numbers right and words left") {
  Table table({"group", "parameters", "share"});
  table.add_row({"embed_tokens", "524,288", "14.2%"});
  table.add_row({"ffn", "2,113,536", "57.3%"});
  table.add_rule();
  table.add_row({"total", "3,688,704"});
  CHECK(table.text() ==
        "group         parameters  share\n"
        "------------  ----------  -----\n"
        "embed_tokens     524,288  14.2%\n"
        "ffn            2,113,536  57.3%\n"
        "------------  ----------  -----\n"
        "total          3,688,704\n");
  CHECK_THROWS_AS(table.add_row({"a", "b", "c", "d"}), Error);
}

TEST_CASE("wide characters take two columns") {
  CHECK(display_width("abc") == 3);
  CHECK(display_width("模型") == 4);
  CHECK(display_width("é") == 1);
  CHECK(display_width("e\xcc\x81") == 1);  // e and a combining accent
  CHECK(display_width("😀") == 2);
  CHECK(display_width("") == 0);
  CHECK(display_width("\xff\xe6\xad") == 2);  // broken UTF-8: no crash
  Table table({"name", "n"});
  table.add_row({"模型", "1"});
  table.add_row({"abcd", "22"});
  CHECK(table.text() == "name   n\n----  --\n模型   1\nabcd  22\n");
}

TEST_CASE("a curve in ASCII marks the points it was given") {
  CurveOptions options;
  options.columns = 5;
  options.rows = 3;
  options.braille = false;
  CHECK(curve({{"a", {0, 1, 2}, {2, 1, 0}}}, options) ==
        "  loss\n"
        "2 |*\n"
        "  | **\n"
        "0 |   **\n"
        "  +-----\n"
        "   0 2 step\n");
}

TEST_CASE("a curve leaves out what is not finite and survives every shape of data") {
  CHECK(curve({}).empty());
  CHECK(curve({{"a", {}, {}}}).empty());
  CHECK(curve({{"a", {0, 1}, {NAN, INFINITY}}}).empty());
  CHECK_FALSE(curve({{"a", {3}, {7}}}).empty());                // one point
  CHECK_FALSE(curve({{"a", {0, 1, 2}, {5, 5, 5}}}).empty());    // a flat line
  CHECK_FALSE(curve({{"a", {0, 1, 2}, {5, NAN, 5}}}).empty());  // a gap
  CHECK_FALSE(curve({{"a", {0, 1, 2}, {1e308, -1e308, 0}}}).empty());
  const std::string two = curve({{"train", {0, 100}, {7, 3}}, {"val", {50, 100}, {5, 4}}});
  CHECK(two.find("train   val") != std::string::npos);
  CHECK(two.find("100 step") != std::string::npos);
}

TEST_CASE("braille dots: a falling diagonal on one character") {
  CurveOptions options;
  options.columns = 1;
  options.rows = 1;
  // Dots (0,0) and (1,3) with two between: bits 0x01, 0x02 or 0x10, ... ; the corners are what is fixed.
  const std::string text = curve({{"a", {0, 1}, {1, 0}}}, options);
  const size_t at = text.find('\xe2');
  REQUIRE(at != std::string::npos);
  const unsigned bits =
      (static_cast<unsigned char>(text[at + 1]) & 0x3U) << 6 | (static_cast<unsigned char>(text[at + 2]) & 0x3fU);
  CHECK((bits & 0x81U) == 0x81U);  // top left and bottom right
  CHECK((bits & 0x48U) == 0);      // not the other two corners
}

TEST_CASE("the progress line reads as documented and stays off pipes") {
  CHECK(progress_text({100, 2000, 3.41208, 3e-4, 0.8123, 12400.7, 62}) ==
        "step 100/2000 | loss 3.4121 | lr 3.0e-04 | grad_norm 0.81 | 12,400 tok/s | 1:02 left");
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  {
    ProgressLine line(file);
    CHECK_FALSE(line.active());
    line.show("step 1");
  }
  CHECK(std::ftell(file) == 0);
  std::fclose(file);
}
