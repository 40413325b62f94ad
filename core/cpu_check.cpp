// Compiled for any x86-64 (CMakeLists.txt), whatever the rest is compiled for. No inline function or template of a
// header may be used here: the linker keeps one copy of each, which may be one from a file with the build's flags.

#include "core/cpu_check.h"

#include <unistd.h>

#include <cstring>

namespace minillm {

namespace {

size_t append(char* text, size_t length, size_t size, const char* more) {
  const size_t wanted = std::strlen(more);
  const size_t count = wanted < size - length ? wanted : size - length;
  std::memcpy(text + length, more, count);
  return length + count;
}

bool is_present(const char* name, const CpuFeature* known) {
  for (; known->name != nullptr; ++known) {
    if (std::strcmp(known->name, name) == 0) {
      return known->present;
    }
  }
  return false;
}

}  // namespace

size_t describe_missing_features(const char* const* needed, const CpuFeature* known, char* text, size_t size) {
  size_t length = 0;
  for (; *needed != nullptr; ++needed) {
    if (!is_present(*needed, known)) {
      const bool first = length == 0;
      length =
          append(text, length, size,
                 first ? "error: start: this program was built for another processor; found a CPU without " : ", ");
      length = append(text, length, size, *needed);
    }
  }
  if (length > 0) {
    length = append(text, length, size, "; build it on this machine, or with the release preset\n");
  }
  return length;
}

}  // namespace minillm

#ifdef __x86_64__

/// Priority 101 is the first that programs may have: before every C++ static initialiser of the program. The name is
/// what the link asks for, since nothing calls it.
extern "C" __attribute__((constructor(101))) void minillm_check_cpu() {
  using namespace minillm;
  if (needed_cpu_features[0] == nullptr) {
    return;
  }
  __builtin_cpu_init();
  const CpuFeature known[] = {
      {"sse3", __builtin_cpu_supports("sse3") != 0},
      {"ssse3", __builtin_cpu_supports("ssse3") != 0},
      {"sse4.1", __builtin_cpu_supports("sse4.1") != 0},
      {"sse4.2", __builtin_cpu_supports("sse4.2") != 0},
      {"popcnt", __builtin_cpu_supports("popcnt") != 0},
      {"avx", __builtin_cpu_supports("avx") != 0},
      {"avx2", __builtin_cpu_supports("avx2") != 0},
      {"fma", __builtin_cpu_supports("fma") != 0},
      {"fma4", __builtin_cpu_supports("fma4") != 0},
      {"xop", __builtin_cpu_supports("xop") != 0},
      {"bmi", __builtin_cpu_supports("bmi") != 0},
      {"bmi2", __builtin_cpu_supports("bmi2") != 0},
      {"avx512f", __builtin_cpu_supports("avx512f") != 0},
      {"avx512cd", __builtin_cpu_supports("avx512cd") != 0},
      {"avx512bw", __builtin_cpu_supports("avx512bw") != 0},
      {"avx512dq", __builtin_cpu_supports("avx512dq") != 0},
      {"avx512vl", __builtin_cpu_supports("avx512vl") != 0},
      {"avx512ifma", __builtin_cpu_supports("avx512ifma") != 0},
      {"avx512vbmi", __builtin_cpu_supports("avx512vbmi") != 0},
      {"avx512vbmi2", __builtin_cpu_supports("avx512vbmi2") != 0},
      {"avx512vnni", __builtin_cpu_supports("avx512vnni") != 0},
      {"avx512bitalg", __builtin_cpu_supports("avx512bitalg") != 0},
      {"avx512vpopcntdq", __builtin_cpu_supports("avx512vpopcntdq") != 0},
      {"avx512bf16", __builtin_cpu_supports("avx512bf16") != 0},
      {"gfni", __builtin_cpu_supports("gfni") != 0},
      {nullptr, false},
  };
  char text[1024];
  const size_t length = describe_missing_features(needed_cpu_features, known, text, sizeof text);
  if (length > 0) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, length);
    _exit(2);
  }
}

#endif
