#include "core/kernels/gemm.h"

namespace minillm::kernels {

template <class T>
void gemm_reference(Operand<T> A, Operand<T> B, Result<T> C, int64_t M, int64_t N, int64_t K, double beta) {
  for (int64_t m = 0; m < M; ++m) {
    T* C_m = C.data + m * C.ld;
    for (int64_t n = 0; n < N; ++n) {
      C_m[n] = beta == 0.0 ? T{0} : C_m[n];
    }
    if (B.transposed) {
      for (int64_t n = 0; n < N; ++n) {
        const T* B_n = B.data + n * B.ld;
        T sum = 0;
        for (int64_t k = 0; k < K; ++k) {
          const T a = A.transposed ? A.data[k * A.ld + m] : A.data[m * A.ld + k];
          sum += a * B_n[k];
        }
        C_m[n] += sum;
      }
    } else {
      for (int64_t k = 0; k < K; ++k) {
        const T a = A.transposed ? A.data[k * A.ld + m] : A.data[m * A.ld + k];
        const T* B_k = B.data + k * B.ld;
        for (int64_t n = 0; n < N; ++n) {
          C_m[n] += a * B_k[n];
        }
      }
    }
  }
}

template void gemm_reference(Operand<float>, Operand<float>, Result<float>, int64_t, int64_t, int64_t, double);
template void gemm_reference(Operand<double>, Operand<double>, Result<double>, int64_t, int64_t, int64_t, double);

}  // namespace minillm::kernels
