// Register tiles of 14 x 32 for AVX-512: twenty-eight sums, two vectors of B and one value of A in thirty-two
// registers.

#include "core/kernels/gemm_panels.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace minillm::kernels {

namespace {

#define TARGET __attribute__((target("avx512f")))

constexpr int64_t tile_rows = 14;
constexpr bool spread_prefetch = true;
constexpr int64_t lanes = 16;
using Vector = __m512;

TARGET inline Vector zero() {
  return _mm512_setzero_ps();
}
TARGET inline Vector load(const float* from) {
  return _mm512_load_ps(from);
}
TARGET inline Vector load_any(const float* from) {
  return _mm512_loadu_ps(from);
}
TARGET inline void store_any(float* to, Vector v) {
  _mm512_storeu_ps(to, v);
}
TARGET inline Vector broadcast(const float* from) {
  return _mm512_set1_ps(*from);
}
TARGET inline Vector fma(Vector a, Vector b, Vector c) {
  return _mm512_fmadd_ps(a, b, c);
}
TARGET inline Vector add(Vector a, Vector b) {
  return _mm512_add_ps(a, b);
}

#include "core/kernels/gemm_transpose8.inc.h"

#include "core/kernels/gemm_panels.inc.h"

}  // namespace

const PanelKernel* avx512_panels() {
  static const PanelKernel kernel = {tile_rows, tile_columns, "AVX-512", pack_rows, pack_columns, multiply};
  return __builtin_cpu_supports("avx512f") ? &kernel : nullptr;
}

}  // namespace minillm::kernels

#else

namespace minillm::kernels {

const PanelKernel* avx512_panels() {
  return nullptr;
}

}  // namespace minillm::kernels

#endif
