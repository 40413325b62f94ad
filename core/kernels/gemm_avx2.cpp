// Register tiles of 6 x 16 for AVX2: twelve sums, two vectors of B and one value of A fill the sixteen registers.

#include "core/kernels/gemm_panels.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace minillm::kernels {

namespace {

#define TARGET __attribute__((target("avx2,fma")))

constexpr int64_t tile_rows = 6;
constexpr bool spread_prefetch = false;
constexpr int64_t lanes = 8;
using Vector = __m256;

TARGET inline Vector zero() {
  return _mm256_setzero_ps();
}
TARGET inline Vector load(const float* from) {
  return _mm256_load_ps(from);
}
TARGET inline Vector load_any(const float* from) {
  return _mm256_loadu_ps(from);
}
TARGET inline void store_any(float* to, Vector v) {
  _mm256_storeu_ps(to, v);
}
TARGET inline Vector broadcast(const float* from) {
  return _mm256_broadcast_ss(from);
}
TARGET inline Vector fma(Vector a, Vector b, Vector c) {
  return _mm256_fmadd_ps(a, b, c);
}
TARGET inline Vector add(Vector a, Vector b) {
  return _mm256_add_ps(a, b);
}

#include "core/kernels/gemm_transpose8.inc.h"

#include "core/kernels/gemm_panels.inc.h"

}  // namespace

const PanelKernel* avx2_panels() {
  static const PanelKernel kernel = {tile_rows, tile_columns, "AVX2", pack_rows, pack_columns, multiply};
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &kernel : nullptr;
}

}  // namespace minillm::kernels

#else

namespace minillm::kernels {

const PanelKernel* avx2_panels() {
  return nullptr;
}

}  // namespace minillm::kernels

#endif
