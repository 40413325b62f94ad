#include "core/kernels/gemm.h"

#include "core/build_info.h"
#include "core/error.h"
#include "core/kernels/gemm_panels.h"
#include "core/parallel.h"

#include <algorithm>

#ifdef MINILLM_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

namespace minillm::kernels {

namespace {

// Large enough that a tile runs near oneDNN's peak, small enough that its operands stay in L2 and the smallest product
// of the reference model (256 x 256) still has four.
constexpr int64_t tile_rows = 128;
constexpr int64_t tile_columns = 128;

#ifdef MINILLM_ONEDNN
/// Keeps oneDNN on the calling thread: it would else start threads of its own and split sums by their number. Inside a
/// parallel region this changes nothing.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

void sgemm(Operand<float> A, Operand<float> B, Result<float> C, int64_t M, int64_t N, int64_t K, double beta) {
  if (M == 0 || N == 0) {  // oneDNN refuses operands without elements
    return;
  }
  const OneThread stay_here;
  const dnnl_status_t status = dnnl_sgemm(A.transposed ? 'T' : 'N', B.transposed ? 'T' : 'N', M, N, K, 1.0F, A.data,
                                          A.ld, B.data, B.ld, static_cast<float>(beta), C.data, C.ld);
  if (status != dnnl_success) {
    fail_work({.where = "oneDNN",
               .what = fmt::format("cannot multiply {} x {} x {}", M, N, K),
               .found = fmt::format("status {}", static_cast<int>(status))});
  }
}
#else
void sgemm(Operand<float> A, Operand<float> B, Result<float> C, int64_t M, int64_t N, int64_t K, double beta) {
  gemm_reference(A, B, C, M, N, K, beta);
}
#endif

}  // namespace

std::string gemm_engine() {
  if (const PanelKernel* kernel = widest_panels()) {
    return fmt::format("{} tiles", kernel->name);
  }
  return onednn_version().empty() ? "loops" : "oneDNN " + onednn_version();
}

std::string gemm_numerics() {
  if (widest_panels() != nullptr) {
    return "tiles";
  }
#ifdef MINILLM_ONEDNN
  return fmt::format("{} isa {}", gemm_engine(), static_cast<int>(dnnl_get_effective_cpu_isa()));
#else
  return gemm_engine();
#endif
}

int64_t packed_floats(int64_t N, int64_t K) {
  const PanelKernel* kernel = widest_panels();
  return kernel != nullptr ? packed_floats(*kernel, N, K) : N * K;
}

Packed pack(Operand<float> B, int64_t N, int64_t K, float* memory) {
  if (const PanelKernel* kernel = widest_panels()) {
    return pack(*kernel, B, N, K, memory);
  }
  for (int64_t k = 0; k < K; ++k) {
    for (int64_t n = 0; n < N; ++n) {
      memory[k * N + n] = B.transposed ? B.data[n * B.ld + k] : B.data[k * B.ld + n];
    }
  }
  return {memory, N, K};
}

void gemm_packed(Operand<float> A, const Packed& B, Result<float> C, int64_t M, int64_t K, double beta) {
  if (const PanelKernel* kernel = widest_panels()) {
    multiply_packed(*kernel, A, B, C, M, K, beta);
    return;
  }
  sgemm(A, {B.data, B.N, false}, C, M, B.N, K, beta);
}

void row_products(Operand<float> A, Operand<float> B, float* y, int64_t rows, int64_t K) {
  if (const PanelKernel* kernel = widest_panels()) {
    kernel->row_products(A.data, A.ld, B.data, B.ld, y, rows, K);
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    y[r] = 0;
    for (int64_t k = 0; k < K; ++k) {
      y[r] += A.data[r * A.ld + k] * B.data[r * B.ld + k];
    }
  }
}

void gemm(Operand<float> A, Operand<float> B, Result<float> C, int64_t M, int64_t N, int64_t K, double beta) {
  gemm_batched(A, B, C, M, N, K, beta, 1, {});
}

void gemm_batched(Operand<float> A, Operand<float> B, Result<float> C, int64_t M, int64_t N, int64_t K, double beta,
                  int64_t count, BatchStrides strides) {
  if (const PanelKernel* kernel = widest_panels(); kernel != nullptr && K > 0) {
    gemm_panels_batched(*kernel, A, B, C, M, N, K, beta, count, strides);
    return;
  }
  if (K == 0) {  // nothing to add, and oneDNN refuses rows of no elements
    for (int64_t i = 0; i < count; ++i) {
      gemm_reference(A, B, {C.data + i * strides.C, C.ld}, M, N, K, beta);
    }
    return;
  }
  const int64_t tiles_down = (M + tile_rows - 1) / tile_rows;
  const int64_t tiles_across = (N + tile_columns - 1) / tile_columns;
  const int64_t tiles = tiles_down * tiles_across;
  parallel_for(count * tiles, 1, [=](int64_t begin, int64_t) {
    const int64_t product = begin / tiles;
    const int64_t m = begin % tiles / tiles_across * tile_rows;
    const int64_t n = begin % tiles_across * tile_columns;
    Operand<float> A_tile = part_from(A, m, 0);
    Operand<float> B_tile = part_from(B, 0, n);
    A_tile.data += product * strides.A;
    B_tile.data += product * strides.B;
    const Result<float> C_tile = {C.data + product * strides.C + m * C.ld + n, C.ld};
    sgemm(A_tile, B_tile, C_tile, std::min(tile_rows, M - m), std::min(tile_columns, N - n), K, beta);
  });
}

}  // namespace minillm::kernels
