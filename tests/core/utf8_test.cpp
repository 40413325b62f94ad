#include "core/utf8.h"

#include <doctest/doctest.h>

using namespace minillm;

TEST_CASE("UTF-8: characters and cuts") {
  CHECK(utf8_character("a") == 1);
  CHECK(utf8_character("é") == 2);
  CHECK(utf8_character("歪") == 3);
  CHECK(utf8_character("😀") == 4);
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe6\xad", "\xe6\xad\x41", "\xff"}) {
    CHECK(utf8_character(bad) == 0);
  }
  CHECK(utf8_cut("aaaa bbbbbbbb", 10) == 4);
  CHECK(utf8_cut("aaaaa  bbbbbbbb", 10) == 5);
  CHECK(utf8_cut("aaaaaaa歪歪歪", 9) == 7);
  CHECK(utf8_cut("short", 9) == 5);
}
