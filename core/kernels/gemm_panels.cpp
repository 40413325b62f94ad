#include "core/kernels/gemm_panels.h"

#include "core/kernels/instruction_set.h"
#include "core/parallel.h"
#include "core/workspace.h"

#include <algorithm>

namespace minillm::kernels {

namespace {

constexpr int64_t most_block_rows = 144;         // with panel_depth: 144 KiB of A, which the second-level cache holds
constexpr int64_t most_block_columns = 4096;     // of C at a time
constexpr int64_t most_packed = 4096 * 256;      // floats of B packed at a time, 4 MiB, if a chunk of K is no more
constexpr int64_t steps_per_pack = 64;           // rows of B that a task packs, where rows lie side by side
constexpr int64_t most_work_beside = 1 << 20;    // multiply-adds of products that run beside each other
constexpr int64_t least_work_of_task = 1 << 16;  // and what a task has of them, if there is so much
constexpr int64_t line = 16;                     // floats of a cache line

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// How C is cut into blocks, one a task: whole register tiles each, and enough of them to keep the threads even.
struct Grid {
  int64_t row_tiles;
  int64_t column_tiles;
  int64_t down;
  int64_t across;

  int64_t blocks() const { return down * across; }
  int64_t first_row_tile(int64_t block) const { return block / across * row_tiles / down; }
  int64_t end_row_tile(int64_t block) const { return (block / across + 1) * row_tiles / down; }
  int64_t first_column_tile(int64_t block) const { return block % across * column_tiles / across; }
  int64_t end_column_tile(int64_t block) const { return (block % across + 1) * column_tiles / across; }
};

/// Where blocks pack their rows of A, none share them: it would be packed once more for each block beside another.
Grid make_grid(const PanelKernel& kernel, int64_t M, int64_t N, bool pack_A) {
  const int64_t threads = num_threads();
  Grid grid = {};
  grid.row_tiles = (M + kernel.rows - 1) / kernel.rows;
  grid.column_tiles = (N + kernel.columns - 1) / kernel.columns;
  grid.down = std::min(grid.row_tiles, round_up((M + most_block_rows - 1) / most_block_rows, threads));
  const int64_t wanted = pack_A ? 1 : (4 * threads + grid.down - 1) / grid.down;
  grid.across = std::clamp<int64_t>(wanted, 1, grid.column_tiles);
  return grid;
}

/// Columns [first, first + columns) of a packed B.
struct PackedColumns {
  const float* data;
  int64_t depth;  ///< of B: K
  int64_t width;  ///< of B, whole panels
  int64_t first;  ///< a panel's first column
  int64_t columns;
};

/// Where step k of the panels from column n on lies in the memory of a B [K, N] that is packed chunk after chunk.
int64_t packed_offset(const PanelKernel& kernel, int64_t n, int64_t k, int64_t width, int64_t K) {
  const int64_t chunk = k / panel_depth * panel_depth;
  return chunk * width + n * std::min(panel_depth, K - chunk) + (k - chunk) * kernel.columns;
}

/// Packs steps [k, k + steps) of columns [n, n + columns) of op(B) [K, N]; the steps belong to one chunk.
void pack_part(const PanelKernel& kernel, const Operand<float>& B, int64_t n, int64_t columns, int64_t k, int64_t steps,
               int64_t width, int64_t K, float* memory) {
  const int64_t chunk = k / panel_depth * panel_depth;
  kernel.pack_columns(part_from(B, k, n), columns, steps, memory + packed_offset(kernel, n, k, width, K),
                      kernel.columns * std::min(panel_depth, K - chunk));
}

/// Packs op(B) [K, N] in parallel, in pieces whose memory lies side by side.
void pack_in_parallel(const PanelKernel& kernel, const Operand<float>& B, int64_t N, int64_t K, float* memory) {
  const int64_t width = round_up(N, kernel.columns);
  const int64_t steps = B.transposed ? panel_depth : steps_per_pack;
  const int64_t columns = B.transposed ? kernel.columns : N;
  const int64_t across = (N + columns - 1) / columns;
  parallel_for((K + steps - 1) / steps * across, 1, [&](int64_t task, int64_t) {
    const int64_t k = task / across * steps;
    const int64_t n = task % across * columns;
    pack_part(kernel, B, n, std::min(columns, N - n), k, std::min(steps, K - k), width, K, memory);
  });
}

/// The block's rows are the first rows of op(A), where they lie.
void place_rows(const PanelKernel& kernel, const Operand<float>& A, PanelBlock& block) {
  block.a = A.data;
  block.a_row = A.transposed ? 1 : A.ld;
  block.a_step = A.transposed ? A.ld : 1;
  block.a_tile = kernel.rows * block.a_row;
}

/// The same, packed into memory of the calling thread. Panels are a line further apart than they are long, else the
/// same step of all of them would fall into few cache sets.
void pack_rows(const PanelKernel& kernel, const Operand<float>& A, PanelBlock& block) {
  thread_local Workspace packed_rows;
  const int64_t panel = round_up(kernel.rows * block.depth, line) + line;
  float* rows = packed_rows.take((block.rows + kernel.rows - 1) / kernel.rows * panel);
  kernel.pack_rows(A, block.rows, block.depth, rows, panel);
  block.a = rows;
  block.a_row = 1;
  block.a_step = kernel.rows;
  block.a_tile = panel;
}

/// C [rows, B.columns] (+)= op(A) [rows, K] times the first K <= B.depth steps of B, chunk after chunk.
void multiply_chunks(const PanelKernel& kernel, const Operand<float>& A, bool pack_A, const PackedColumns& B,
                     Result<float> C, int64_t rows, int64_t K, bool add) {
  for (int64_t k = 0; k < K; k += panel_depth) {
    PanelBlock block = {};
    block.rows = rows;
    block.columns = B.columns;
    block.depth = std::min(panel_depth, K - k);
    block.add = add || k > 0;
    block.b = B.data + packed_offset(kernel, B.first, k, B.width, B.depth);
    block.b_panel = kernel.columns * std::min(panel_depth, B.depth - k);
    block.c = C.data;
    block.c_ld = C.ld;
    if (pack_A) {
      pack_rows(kernel, part_from(A, 0, k), block);
    } else {
      place_rows(kernel, part_from(A, 0, k), block);
    }
    kernel.multiply(block);
  }
}

}  // namespace

const PanelKernel* widest_panels() {
#ifdef MINILLM_NO_SIMD
  return nullptr;
#else
  switch (widest_instruction_set()) {
    case InstructionSet::avx512: return avx512_panels();
    case InstructionSet::avx2: return avx2_panels();
    case InstructionSet::baseline: break;
  }
  return nullptr;
#endif
}

void gemm_panels(const PanelKernel& kernel, Operand<float> A, Operand<float> B, Result<float> C, int64_t M, int64_t N,
                 int64_t K, double beta) {
  if (M == 0 || N == 0) {
    return;
  }
  thread_local Workspace packed;
  const int64_t most_width = std::min(round_up(N, kernel.columns), round_up(most_block_columns, kernel.columns));
  const int64_t most_depth = std::max(panel_depth, most_packed / most_width / panel_depth * panel_depth);
  float* panels = packed.take(most_width * std::min(K, most_depth));
  for (int64_t n = 0; n < N; n += most_width) {
    const int64_t columns = std::min(most_width, N - n);
    const Grid grid = make_grid(kernel, M, columns, A.transposed);
    for (int64_t k = 0; k < K; k += most_depth) {
      const int64_t depth = std::min(most_depth, K - k);
      pack_in_parallel(kernel, part_from(B, k, n), columns, depth, panels);
      parallel_for(grid.blocks(), 1, [&](int64_t block, int64_t) {
        const int64_t m = grid.first_row_tile(block) * kernel.rows;
        const int64_t rows = std::min(M, grid.end_row_tile(block) * kernel.rows) - m;
        PackedColumns part = {panels, depth, round_up(columns, kernel.columns), 0, 0};
        part.first = grid.first_column_tile(block) * kernel.columns;
        part.columns = std::min(columns, grid.end_column_tile(block) * kernel.columns) - part.first;
        multiply_chunks(kernel, part_from(A, m, k), A.transposed, part, {C.data + m * C.ld + n + part.first, C.ld},
                        rows, depth, k > 0 || beta != 0);
      });
    }
  }
}

namespace {

/// On the calling thread, for products that run beside each other.
void gemm_panels_here(const PanelKernel& kernel, Operand<float> A, Operand<float> B, Result<float> C, int64_t M,
                      int64_t N, int64_t K, double beta) {
  thread_local Workspace memory;
  const Packed packed = pack(kernel, B, N, K, memory.take(packed_floats(kernel, N, K)));
  multiply_packed(kernel, A, packed, C, M, K, beta);
}

}  // namespace

void gemm_panels_batched(const PanelKernel& kernel, Operand<float> A, Operand<float> B, Result<float> C, int64_t M,
                         int64_t N, int64_t K, double beta, int64_t count, BatchStrides strides) {
  const int64_t work = std::max<int64_t>(1, M * N * K);
  const auto product = [=, &kernel](int64_t i, auto multiply) {
    multiply(kernel, {A.data + i * strides.A, A.ld, A.transposed}, {B.data + i * strides.B, B.ld, B.transposed},
             {C.data + i * strides.C, C.ld}, M, N, K, beta);
  };
  if (count == 1 || work > most_work_beside) {
    for (int64_t i = 0; i < count; ++i) {
      product(i, gemm_panels);
    }
    return;
  }
  parallel_for(count, std::max<int64_t>(1, least_work_of_task / work), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      product(i, gemm_panels_here);
    }
  });
}

int64_t packed_floats(const PanelKernel& kernel, int64_t N, int64_t K) {
  return round_up(N, kernel.columns) * K;
}

Packed pack(const PanelKernel& kernel, const Operand<float>& B, int64_t N, int64_t K, float* memory) {
  for (int64_t k = 0; k < K; k += panel_depth) {
    pack_part(kernel, B, 0, N, k, std::min(panel_depth, K - k), round_up(N, kernel.columns), K, memory);
  }
  return {memory, N, K};
}

void multiply_packed(const PanelKernel& kernel, Operand<float> A, const Packed& B, Result<float> C, int64_t M,
                     int64_t K, double beta) {
  const PackedColumns whole = {B.data, B.K, round_up(B.N, kernel.columns), 0, B.N};
  multiply_chunks(kernel, A, false, whole, C, M, K, beta != 0);
}

}  // namespace minillm::kernels
