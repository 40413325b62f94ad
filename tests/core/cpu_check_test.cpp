#include "core/cpu_check.h"

#include <doctest/doctest.h>

#include <string>

using namespace minillm;

namespace {

constexpr CpuFeature haswell[] = {{"avx", true}, {"avx2", true}, {"avx512f", false}, {"gfni", false}, {nullptr, false}};

std::string message(const char* const* needed, size_t size = 1024) {
  std::string text(size, '?');
  text.resize(describe_missing_features(needed, haswell, text.data(), size));
  return text;
}

}  // namespace

TEST_CASE("a processor that has what the build needs is not complained about") {
  const char* const nothing[] = {nullptr};
  const char* const both[] = {"avx2", "avx", nullptr};
  CHECK(message(nothing).empty());
  CHECK(message(both).empty());
}

TEST_CASE("every feature that is missing is named, also one that the check does not know") {
  const char* const one[] = {"avx", "avx512f", nullptr};
  CHECK(message(one) ==
        "error: start: this program was built for another processor; found a CPU without avx512f; "
        "build it on this machine, or with the release preset\n");
  const char* const several[] = {"avx512f", "avx2", "gfni", "new", nullptr};
  CHECK(message(several).find(" without avx512f, gfni, new; build") != std::string::npos);
}

TEST_CASE("a message longer than its buffer is cut") {
  const char* const needed[] = {"gfni", "avx512f", nullptr};
  std::string text(64, '?');
  CHECK(describe_missing_features(needed, haswell, text.data(), 20) == 20);
  CHECK(text.substr(0, 22) == "error: start: this p??");
}

TEST_CASE("a portable build needs nothing, one for AVX2 says so") {
  std::string needed;
  for (const char* const* name = needed_cpu_features; *name != nullptr; ++name) {
    needed += std::string(*name) + ",";
  }
#ifdef __AVX2__
  CHECK(needed.find("avx,avx2,") != std::string::npos);
#elif !defined(__SSE3__)
  CHECK(needed.empty());
#endif
}
