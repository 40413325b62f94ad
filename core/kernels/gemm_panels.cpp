#include "core/kernels/gemm_panels.h"

#include "core/kernels/instruction_set.h"
#include "core/parallel.h"
#include "core/workspace.h"

#include <algorithm>

namespace minillm::kernels {

namespace {

constexpr int64_t most_block_rows = 144;      // with panel_depth: 144 KiB of A, which the second-level cache holds
constexpr int64_t most_block_columns = 4096;  // of B packed at a time: 4 MiB
constexpr int64_t room_behind = 16;           // packing copies whole vectors

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

Grid make_grid(const PanelKernel& kernel, int64_t M, int64_t N) {
  const int64_t threads = num_threads();
  Grid grid = {};
  grid.row_tiles = (M + kernel.rows - 1) / kernel.rows;
  grid.column_tiles = (N + kernel.columns - 1) / kernel.columns;
  grid.down = std::min(grid.row_tiles, round_up((M + most_block_rows - 1) / most_block_rows, threads));
  const int64_t wanted = 4 * threads;
  grid.across = std::clamp<int64_t>((wanted + grid.down - 1) / grid.down, 1, grid.column_tiles);
  return grid;
}

/// The block's rows are rows [m, ...) of op(A), from step k on, where they lie.
void place_rows(const PanelKernel& kernel, const Operand<float>& A, int64_t m, int64_t k, PanelBlock& block) {
  block.a = A.transposed ? A.data + k * A.ld + m : A.data + m * A.ld + k;
  block.a_row = A.transposed ? 1 : A.ld;
  block.a_step = A.transposed ? A.ld : 1;
  block.a_tile = kernel.rows * block.a_row;
}

/// The same, packed into memory of the calling thread.
void pack_rows(const PanelKernel& kernel, const Operand<float>& A, int64_t m, int64_t k, PanelBlock& block) {
  thread_local Workspace packed_rows;
  float* rows = packed_rows.take(round_up(block.rows, kernel.rows) * block.depth + room_behind);
  kernel.pack_rows(A, m, block.rows, k, block.depth, rows);
  block.a = rows;
  block.a_row = 1;
  block.a_step = kernel.rows;
  block.a_tile = kernel.rows * block.depth;
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
  thread_local Workspace packed_columns;
  const int64_t width = std::min(round_up(N, kernel.columns), round_up(most_block_columns, kernel.columns));
  float* columns = packed_columns.take(width * std::min(K, panel_depth) + room_behind);
  for (int64_t n = 0; n < N; n += width) {
    const int64_t N_part = std::min(width, N - n);
    const Grid grid = make_grid(kernel, M, N_part);
    for (int64_t k = 0; k < K; k += panel_depth) {
      const int64_t depth = std::min(panel_depth, K - k);
      parallel_for(N_part, kernel.columns, [&](int64_t begin, int64_t end) {
        kernel.pack_columns(B, n + begin, end - begin, k, depth, columns + begin * depth);
      });
      parallel_for(grid.blocks(), 1, [&](int64_t block, int64_t) {
        const int64_t m = grid.first_row_tile(block) * kernel.rows;
        const int64_t first = grid.first_column_tile(block) * kernel.columns;
        PanelBlock part = {};
        part.rows = std::min(M, grid.end_row_tile(block) * kernel.rows) - m;
        part.columns = std::min(N_part, grid.end_column_tile(block) * kernel.columns) - first;
        part.depth = depth;
        part.add = k > 0 || beta != 0;
        part.b = columns + first * depth;
        part.b_panel = kernel.columns * depth;
        part.c = C.data + m * C.ld + n + first;
        part.c_ld = C.ld;
        if (A.transposed) {
          pack_rows(kernel, A, m, k, part);
        } else {
          place_rows(kernel, A, m, k, part);
        }
        kernel.multiply(part);
      });
    }
  }
}

int64_t packed_floats(const PanelKernel& kernel, int64_t N, int64_t K) {
  return round_up(N, kernel.columns) * K + room_behind;
}

Packed pack(const PanelKernel& kernel, const Operand<float>& B, int64_t N, int64_t K, float* memory) {
  const int64_t width = round_up(N, kernel.columns);
  for (int64_t k = 0; k < K; k += panel_depth) {
    kernel.pack_columns(B, 0, N, k, std::min(panel_depth, K - k), memory + k * width);
  }
  return {memory, N, K};
}

void multiply_packed(const PanelKernel& kernel, Operand<float> A, const Packed& B, Result<float> C, int64_t M,
                     int64_t K, double beta) {
  const int64_t width = round_up(B.N, kernel.columns);
  for (int64_t k = 0; k < K; k += panel_depth) {
    PanelBlock whole = {};
    whole.rows = M;
    whole.columns = B.N;
    whole.depth = std::min(panel_depth, K - k);
    whole.add = k > 0 || beta != 0;
    whole.b = B.data + k * width;
    whole.b_panel = kernel.columns * std::min(panel_depth, B.K - k);  // packed deeper than K, panels lie further apart
    whole.c = C.data;
    whole.c_ld = C.ld;
    place_rows(kernel, A, 0, k, whole);
    kernel.multiply(whole);
  }
}

}  // namespace minillm::kernels
