// Register tiles of 6 x 16 for AVX2: twelve sums, two vectors of B and one value of A fill the sixteen registers.

#include "core/kernels/gemm_panels.h"
#include "core/kernels/instruction_set.h"
#include "core/kernels/vectors.h"

namespace minillm::kernels {

#if defined(__x86_64__)

namespace {

#define TARGET MINILLM_AVX2
using Isa = Avx2;
constexpr int64_t tile_rows = 6;
constexpr bool spread_prefetch = false;

#include "core/kernels/gemm_panels.inc"

}  // namespace

const PanelKernel* avx2_panels() {
  static const PanelKernel kernel = {tile_rows,           tile_columns,           "AVX2",
                                     pack_rows,           pack_columns,           multiply,
                                     multiply_row<float>, multiply_row<uint16_t>, row_products};
  return has(InstructionSet::avx2) ? &kernel : nullptr;
}

#else

const PanelKernel* avx2_panels() {
  return nullptr;
}

#endif

}  // namespace minillm::kernels
