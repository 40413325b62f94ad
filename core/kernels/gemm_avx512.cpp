// Register tiles of 14 x 32 for AVX-512: twenty-eight sums, two vectors of B and one value of A in thirty-two
// registers.

#include "core/kernels/gemm_panels.h"
#include "core/kernels/instruction_set.h"
#include "core/kernels/vectors.h"

namespace minillm::kernels {

#if defined(__x86_64__)

namespace {

#define TARGET MINILLM_AVX512
using Isa = Avx512;
constexpr int64_t tile_rows = 14;
constexpr bool spread_prefetch = true;

#include "core/kernels/gemm_panels.inc"

}  // namespace

const PanelKernel* avx512_panels() {
  static const PanelKernel kernel = {tile_rows,           tile_columns,           "AVX-512",
                                     pack_rows,           pack_columns,           multiply,
                                     multiply_row<float>, multiply_row<uint16_t>, row_products};
  return has(InstructionSet::avx512) ? &kernel : nullptr;
}

#else

const PanelKernel* avx512_panels() {
  return nullptr;
}

#endif

}  // namespace minillm::kernels
