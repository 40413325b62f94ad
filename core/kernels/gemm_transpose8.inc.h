// Included by gemm_avx2.cpp and gemm_avx512.cpp, as gemm_panels.inc.h is.

/// to[k * to_ld + w] = from[w * from_ld + k] for an 8 x 8 block.
TARGET inline void transpose8(const float* from, int64_t from_ld, float* to, int64_t to_ld) {
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
