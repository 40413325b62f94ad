#pragma once
// Matrix products by register tiles, for processors with AVX2 or AVX-512.
//
// B is packed into panels of `columns` columns, depth after depth, which one register tile of `rows` x `columns` reads
// front to back; A is read where it lies, or packed likewise when it is stored transposed. Every element of C is
//
//   C = beta * C + chunk(0) + chunk(1) + ...      chunk: one chain of fused multiply-adds over 256 steps of K
//
// added in this order whatever the tiles and the threads are, so the blocking is free and both instruction sets give
// the same bits (Goto and van de Geijn 2008, "Anatomy of High-Performance Matrix Multiplication", is the scheme).

#include "core/kernels/gemm.h"

#include <cstdint>

namespace minillm::kernels {

/// Steps of K in a chunk: a panel of B stays in the first-level cache, a block of A in the second.
inline constexpr int64_t panel_depth = 256;

/// What a block of C is made from: rows of A against packed columns of B, over one chunk of K.
struct PanelBlock {
  const float* a;   ///< element (0, 0) of the block of A
  int64_t a_row;    ///< from one row of a register tile to the next
  int64_t a_step;   ///< from one step of K to the next
  int64_t a_tile;   ///< from one register tile to the next
  const float* b;   ///< packed panels
  int64_t b_panel;  ///< from one panel to the next
  float* c;         ///< element (0, 0) of the block
  int64_t c_ld;     ///< between rows of C
  int64_t rows;     ///< of the block
  int64_t columns;  ///< of the block
  int64_t depth;    ///< at most panel_depth
  bool add;         ///< to C; else it is overwritten
};

/// The loops for one instruction set.
struct PanelKernel {
  int64_t rows;     ///< of a register tile
  int64_t columns;  ///< of a register tile: vectors of B
  const char* name;

  /// Packs `steps` steps of `rows` rows of op(A), A transposed, into panels of this->rows that lie `panel` floats
  /// apart, the last one filled up with zeros.
  void (*pack_rows)(const Operand<float>& A, int64_t rows, int64_t steps, float* to, int64_t panel);
  /// The same for columns of op(B).
  void (*pack_columns)(const Operand<float>& B, int64_t columns, int64_t steps, float* to, int64_t panel);
  void (*multiply)(const PanelBlock& block);

  /// y [columns] = x [K] times the first columns of panels that are K steps deep and lie one behind the other, in float
  /// or bfloat16, added to y if `add`: the bits of a row of multiply(), which is made for several.
  void (*multiply_row)(const float* x, const float* panels, int64_t columns, int64_t K, float* y, bool add);
  void (*multiply_row_bf16)(const float* x, const uint16_t* panels, int64_t columns, int64_t K, float* y, bool add);

  /// gemm.h's row_products.
  void (*row_products)(const float* a, int64_t a_ld, const float* b, int64_t b_ld, float* y, int64_t rows, int64_t K);
};

/// Null where the compiler or the processor does not know the instruction set.
const PanelKernel* avx2_panels();
const PanelKernel* avx512_panels();

/// That of widest_instruction_set(); null: neither, or a build without SIMD.
const PanelKernel* widest_panels();

/// C = beta * C + op(A) op(B) with `kernel`'s tiles, in parallel. K >= 1.
void gemm_panels(const PanelKernel& kernel, Operand<float> A, Operand<float> B, Result<float> C, int64_t M, int64_t N,
                 int64_t K, double beta);

/// gemm.h's gemm_batched with `kernel`'s tiles: small products beside each other, one a thread. K >= 1.
void gemm_panels_batched(const PanelKernel& kernel, Operand<float> A, Operand<float> B, Result<float> C, int64_t M,
                         int64_t N, int64_t K, double beta, int64_t count, BatchStrides strides);

/// gemm.h's packed products with `kernel`'s tiles: panels, chunk after chunk of K. K >= 1.
int64_t packed_floats(const PanelKernel& kernel, int64_t N, int64_t K);
Packed pack(const PanelKernel& kernel, const Operand<float>& B, int64_t N, int64_t K, float* memory);
void multiply_packed(const PanelKernel& kernel, Operand<float> A, const Packed& B, Result<float> C, int64_t M,
                     int64_t K, double beta);

}  // namespace minillm::kernels
