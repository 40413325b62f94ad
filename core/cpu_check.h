#pragma once
// the first check of a program: the processor has the instruction sets it was compiled for
//
// A build with -march=native uses instructions that an older processor does not have and dies there of SIGILL, perhaps
// before main, without a word. So a constructor that runs before the program's others, compiled for any x86-64,
// compares what the build used with what the processor has, and ends with one message and exit status 2. A portable
// build needs nothing, and other architectures have no check.

#include <cstddef>

namespace minillm {

/// What this build was compiled for beyond x86-64's baseline, by the compilers' names ("avx2"); nullptr behind the
/// last.
extern const char* const needed_cpu_features[];

struct CpuFeature {
  const char* name;  ///< nullptr behind the last
  bool present;
};

/// Writes the message about the needed features that are not among the present ones into text, with a line end, and
/// returns its length: 0 when nothing is missing, at most `size`. A name that `known` does not list is missing.
size_t describe_missing_features(const char* const* needed, const CpuFeature* known, char* text, size_t size);

}  // namespace minillm
