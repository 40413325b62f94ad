#pragma once
// What fast kernels share: one source for several instruction sets, and sums with a fixed order.

#include <cstdint>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

#if defined(__x86_64__)
// Vectors of one instruction set, for loops that the compiler does not vectorise well enough. Every function that uses
// them carries the attribute, and runs only where __builtin_cpu_supports says so.
#define MINILLM_AVX2 __attribute__((target("avx2,fma")))
#define MINILLM_AVX512 __attribute__((target("avx512f,avx2,fma")))
#define MINILLM_AVX512_VNNI __attribute__((target("avx512f,avx512vnni,avx2,fma")))

struct Avx2 {
  using Vector = __m256;
  static constexpr int64_t floats = 8;  // in a vector

  MINILLM_AVX2 static inline Vector zero() { return _mm256_setzero_ps(); }
  MINILLM_AVX2 static inline Vector load(const float* from) { return _mm256_loadu_ps(from); }
  MINILLM_AVX2 static inline Vector load(const uint16_t* from) {  // bfloat16
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
  MINILLM_AVX2 static inline void store(float* to, Vector v) { _mm256_storeu_ps(to, v); }
  MINILLM_AVX2 static inline void copy_half(const float* from, float* to) { _mm_storeu_ps(to, _mm_loadu_ps(from)); }
  MINILLM_AVX2 static inline Vector broadcast(const float* from) { return _mm256_broadcast_ss(from); }
  MINILLM_AVX2 static inline Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  MINILLM_AVX2 static inline Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }

  /// to[k * to_ld + w] = from[w * from_ld + k] for an 8 x 8 block.
  MINILLM_AVX2 static inline void transpose8(const float* from, int64_t from_ld, float* to, int64_t to_ld) {
    __m256 row[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      row[i] = _mm256_loadu_ps(from + i * from_ld);
    }
    __m256 pair[8];  // elements of rows i and i + 1, alternating
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
      pair[i] = _mm256_unpacklo_ps(row[i], row[i + 1]);
      pair[i + 1] = _mm256_unpackhi_ps(row[i], row[i + 1]);
    }
    __m256 four[8];  // columns of four rows: column c in the lower half, c + 4 in the upper one
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
      four[i] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44);
      four[i + 1] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0xEE);
      four[i + 2] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44);
      four[i + 3] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xEE);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      _mm256_storeu_ps(to + i * to_ld, _mm256_permute2f128_ps(four[i], four[i + 4], 0x20));
      _mm256_storeu_ps(to + (i + 4) * to_ld, _mm256_permute2f128_ps(four[i], four[i + 4], 0x31));
    }
  }
};

struct Avx512 {
  using Vector = __m512;
  static constexpr int64_t floats = 16;
  static constexpr __mmask16 all = 0xffff;  // GCC 12 warns of operations without a mask (GCC bug 105593)

  MINILLM_AVX512 static inline Vector zero() { return _mm512_setzero_ps(); }
  MINILLM_AVX512 static inline Vector load(const float* from) { return _mm512_loadu_ps(from); }
  MINILLM_AVX512 static inline Vector load(const uint16_t* from) {  // bfloat16
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(all, _mm512_maskz_cvtepu16_epi32(all, halves), 16));
  }
  MINILLM_AVX512 static inline void store(float* to, Vector v) { _mm512_storeu_ps(to, v); }
  MINILLM_AVX512 static inline void copy_half(const float* from, float* to) {
    _mm256_storeu_ps(to, _mm256_loadu_ps(from));
  }
  MINILLM_AVX512 static inline Vector broadcast(const float* from) { return _mm512_set1_ps(*from); }
  MINILLM_AVX512 static inline Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  MINILLM_AVX512 static inline Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }

  MINILLM_AVX512 static inline void transpose8(const float* from, int64_t from_ld, float* to, int64_t to_ld) {
    Avx2::transpose8(from, from_ld, to, to_ld);
  }
};

struct Avx512Vnni {
  using Vector = __m512;
  using Bytes = __m512i;

  MINILLM_AVX512_VNNI static inline Vector zero() { return _mm512_setzero_ps(); }
  MINILLM_AVX512_VNNI static inline Bytes load(const void* from) { return _mm512_loadu_si512(from); }
  MINILLM_AVX512_VNNI static inline void store(float* to, Vector v) { _mm512_storeu_ps(to, v); }
  /// sum + factor * values, rounded twice
  MINILLM_AVX512_VNNI static inline Vector add_scaled(Vector sum, float factor, Vector values) {
    return _mm512_add_ps(sum, _mm512_mul_ps(_mm512_set1_ps(factor), values));
  }
  /// Lane i of 16: start[i] + sum over k < 4 of a[4i + k] b[4i + k], a unsigned bytes, b signed, exactly.
  MINILLM_AVX512_VNNI static inline Vector dot4(Bytes start, Bytes a, Bytes b) {
    return _mm512_maskz_cvtepi32_ps(Avx512::all, _mm512_dpbusd_epi32(start, a, b));
  }
};
#endif

}  // namespace minillm::kernels
