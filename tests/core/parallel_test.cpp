#include "core/parallel.h"
#include "core/error.h"

#include <doctest/doctest.h>

#include <vector>

using namespace minillm;

TEST_CASE("parallel_for covers each index once, in chunks that depend on count and chunk alone") {
  for (int threads : {1, 2, 3, 4}) {
    set_num_threads(threads);
    for (int64_t count : {0, 1, 7, 64, 65, 1000}) {
      CAPTURE(threads);
      CAPTURE(count);
      std::vector<int> visits(static_cast<size_t>(count), 0);
      std::vector<int64_t> ends(static_cast<size_t>(count), 0);
      parallel_for(count, 64, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          ++visits[static_cast<size_t>(i)];
          ends[static_cast<size_t>(i)] = end;
        }
      });
      for (int64_t i = 0; i < count; ++i) {
        CHECK(visits[static_cast<size_t>(i)] == 1);
        CHECK(ends[static_cast<size_t>(i)] == std::min(count, (i / 64 + 1) * 64));
      }
    }
  }
  set_num_threads(2);
}

TEST_CASE("what a chunk throws reaches the caller: that of the first chunk, whatever the number of threads") {
  for (int threads : {1, 2, 4}) {
    CAPTURE(threads);
    set_num_threads(threads);
    const auto fail_from_third = [](int64_t begin, int64_t) { check(begin < 30, "chunk {}", begin); };
    CHECK_THROWS_WITH_AS(parallel_for(100, 10, fail_from_third), "chunk 30", Error);
    int64_t done = 0;
    parallel_for(1, 1, [&done](int64_t, int64_t end) { done = end; });  // and the next loop runs
    CHECK(done == 1);
  }
  set_num_threads(2);
}

TEST_CASE("the number of threads is at least 1, and that of the usable cores for 0") {
  CHECK_THROWS_AS(set_num_threads(-1), Error);
  CHECK(num_threads() == 2);
  CHECK(usable_cores() >= 1);
  set_num_threads(0);
  CHECK(num_threads() == usable_cores());
  set_num_threads(2);
}

TEST_CASE("denormals are flushed on every thread") {
#if defined(__SSE__)
  set_num_threads(3);
  volatile float small = 1e-30F;
  std::vector<float> products(3, 1.0F);
  parallel_for(3, 1, [&](int64_t begin, int64_t) { products[static_cast<size_t>(begin)] = small * 1e-10F; });
  for (float product : products) {
    CHECK(product == 0.0F);
  }
  set_num_threads(2);
#endif
}
