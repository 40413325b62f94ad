#include "core/arena.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <vector>

using namespace minillm;

TEST_CASE("arena memory is aligned and does not overlap") {
  Arena arena;
  std::vector<char*> pieces;
  for (size_t bytes : {1U, 63U, 64U, 65U, 0U, 1000U}) {
    char* memory = static_cast<char*>(arena.allocate(bytes));
    CHECK(reinterpret_cast<uintptr_t>(memory) % 64 == 0);
    std::memset(memory, static_cast<int>(pieces.size() + 1), bytes);
    pieces.push_back(memory);
  }
  CHECK(pieces[0][0] == 1);
  CHECK(pieces[1][62] == 2);
  CHECK(pieces[3][64] == 4);
  CHECK(arena.bytes_used() == 64 + 64 + 64 + 128 + 64 + 1024);
}

TEST_CASE("clear reuses the same memory") {
  Arena arena;
  void* first = arena.allocate(100);
  arena.allocate(100);
  arena.clear();
  CHECK(arena.bytes_used() == 0);
  CHECK(arena.allocate(100) == first);
}

TEST_CASE("after clear several blocks are one, no larger than they were, and a like step needs no more") {
  constexpr size_t mib = size_t{1} << 20;
  Arena arena;
  const auto step = [&arena]() {
    for (int i = 0; i < 10; ++i) {
      arena.allocate(mib);
    }
    arena.allocate(40 * mib);  // more than a doubled block
  };
  step();
  const size_t reserved = arena.bytes_reserved();
  CHECK(reserved >= 50 * mib);
  arena.clear();
  CHECK(arena.bytes_reserved() == 50 * mib);  // what was used, without the gaps at the blocks' ends
  CHECK(arena.bytes_reserved() <= reserved);
  char* first = static_cast<char*>(arena.allocate(64));
  char* second = static_cast<char*>(arena.allocate(45 * mib));
  CHECK(second == first + 64);  // one block: the next piece follows
  for (int i = 0; i < 3; ++i) {
    arena.clear();
    step();
    CHECK(arena.bytes_reserved() == 50 * mib);
  }
}
