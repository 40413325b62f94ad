#pragma once
// What fast kernels share: one source for several instruction sets, and sums with a fixed order.

#include <cstdint>

// A function marked MINILLM_SIMD is compiled for AVX-512, AVX2 and the portable baseline; the loader picks one when the
// program starts. Its loops are plain C++ that the compiler vectorises. With -ffp-contract=off and sums over a fixed
// number of lanes all versions give the same bits. Mark leaf functions that hold loops, never one with an OpenMP pragma
// (the outlined body would lose the attribute). x86-64-v4 is AVX-512 on any maker's processor; a processor's name
// instead would choose that clone on that processor alone, and keep inline functions from being inlined into it.
// Sanitizers and MINILLM_NATIVE builds compile one version.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__AVX2__) && defined(__OPTIMIZE__) && !defined(MINILLM_NO_SIMD)
#define MINILLM_SIMD __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define MINILLM_SIMD
#endif

namespace minillm::kernels {

/// Lanes of every vectorised sum: element i goes to lane i % lanes, lanes are added pairwise. The same on every
/// machine.
inline constexpr int lanes = 16;

/// The sum of `lanes` partial sums by a fixed binary tree.
template <class T>
inline T sum_lanes(const T (&partial)[lanes]) {
  T level[lanes];
  for (int i = 0; i < lanes; ++i) {
    level[i] = partial[i];
  }
  for (int width = lanes / 2; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) {
      level[i] += level[i + width];
    }
  }
  return level[0];
}

}  // namespace minillm::kernels
