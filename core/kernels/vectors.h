#pragma once
// Vectors of one instruction set, for loops that the compiler does not vectorise well enough: the only place with
// intrinsics. Every function that uses them carries the attribute, and runs only where __builtin_cpu_supports says so.

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>

#define MINILLM_AVX2 __attribute__((target("avx2,fma")))
#define MINILLM_AVX512 __attribute__((target("avx512f,avx2,fma")))
#define MINILLM_AVX512_VNNI __attribute__((target("avx512f,avx512vnni,avx2,fma")))

namespace minillm::kernels {

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

}  // namespace minillm::kernels
#endif
