#pragma once
// What fast kernels share: one source for several instruction sets, and sums with a fixed order.

#include <cstdint>
#include <limits>

// A function marked MINILLM_SIMD is compiled for AVX-512, AVX2 and the portable baseline; the loader picks one when the
// program starts. Its loops are plain C++ that the compiler vectorises. With -ffp-contract=off and sums over a fixed
// number of lanes all versions give the same bits. Mark leaf functions that hold loops, never one with an OpenMP pragma
// (the outlined body would lose the attribute). x86-64-v4 is AVX-512 on any maker's processor; a processor's name
// instead would choose that clone on that processor alone, and keep inline functions from being inlined into it.
// Sanitizers and MINILLM_NATIVE builds compile one version.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(MINILLM_SANITIZED) && \
    !defined(__AVX2__) && defined(__OPTIMIZE__) && !defined(MINILLM_NO_SIMD)
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

/// The sum of term(0) .. term(count - 1), each in its lane. Called in functions marked MINILLM_SIMD, it is compiled for
/// each of their instruction sets.
template <class Term>
inline auto sum_in_lanes(int64_t count, Term term) {
  decltype(term(int64_t{0})) partial[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (int lane = 0; lane < lanes; ++lane) {
      partial[lane] += term(i + lane);
    }
  }
  for (; i < count; ++i) {
    partial[i % lanes] += term(i);
  }
  return sum_lanes(partial);
}

/// The largest of x[0 .. count), -infinity when there is none. NaN is passed over.
inline float largest_in_lanes(const float* x, int64_t count) {
  float partial[lanes];
  for (float& lane_largest : partial) {
    lane_largest = -std::numeric_limits<float>::infinity();
  }
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (int lane = 0; lane < lanes; ++lane) {
      partial[lane] = x[i + lane] > partial[lane] ? x[i + lane] : partial[lane];
    }
  }
  for (; i < count; ++i) {
    partial[0] = x[i] > partial[0] ? x[i] : partial[0];
  }
  float largest = partial[0];
  for (float lane_largest : partial) {
    largest = lane_largest > largest ? lane_largest : largest;
  }
  return largest;
}

}  // namespace minillm::kernels
