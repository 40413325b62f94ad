#pragma once
// Matrix products, row-major.
//
//   C = beta * C + op(A) op(B)          op(A) [M, K], op(B) [K, N], C [M, N]; beta 0 or 1
//
// An operand marked transposed is stored the other way round: A as [K, M], B as [N, K]. A leading dimension (ld) is the
// distance between rows in memory, in elements.

#include <cstdint>
#include <string>

namespace minillm::kernels {

template <class T>
struct Operand {
  const T* data = nullptr;
  int64_t ld = 0;
  bool transposed = false;
};

/// The part of op(X) that begins at (row, column).
template <class T>
Operand<T> part_from(Operand<T> X, int64_t row, int64_t column) {
  X.data += X.transposed ? column * X.ld + row : row * X.ld + column;
  return X;
}

template <class T>
struct Result {
  T* data = nullptr;
  int64_t ld = 0;
};

template <class T>
void gemm_reference(Operand<T> A, Operand<T> B, Result<T> C, int64_t M, int64_t N, int64_t K, double beta);

/// What multiplies in this process: "AVX-512 tiles", "AVX2 tiles", "oneDNN 2.6.3" or "loops".
std::string gemm_engine();
/// The same as far as it decides bits: all register tiles give the same ones, oneDNN's depend on version and processor.
std::string gemm_numerics();

/// In parallel, with bits that do not depend on the number of threads: by the register tiles of gemm_panels.h where the
/// processor has AVX2 or AVX-512; else on a grid of tiles made from (M, N) alone, each computed by one thread over the
/// whole of K, by oneDNN where it is built in.
void gemm(Operand<float> A, Operand<float> B, Result<float> C, int64_t M, int64_t N, int64_t K, double beta);

// Small products on the calling thread, for kernels that are parallel over something else (attention: over heads) and
// use one B several times. A is read where it lies, so it should be small or have few columns.

/// Floats that op(B) [K, N] takes when it is packed.
int64_t packed_floats(int64_t N, int64_t K);
/// A packed op(B) [K, N].
struct Packed {
  const float* data = nullptr;
  int64_t N = 0;
  int64_t K = 0;
};
/// Packs into `memory`, which starts on a 64-byte boundary.
Packed pack(Operand<float> B, int64_t N, int64_t K, float* memory);
/// C [M, B.N] = beta * C + op(A) [M, K] times the first K <= B.K rows of B
void gemm_packed(Operand<float> A, const Packed& B, Result<float> C, int64_t M, int64_t K, double beta);

/// y[r] = the product of rows r of A and B [rows, K], rounded as an element of a product is: where a row of A is also
/// one of a matrix multiplied by B^T, the two numbers are equal. (oneDNN may round otherwise.)
void row_products(Operand<float> A, Operand<float> B, float* y, int64_t rows, int64_t K);

/// `count` products whose operands lie stride elements apart (stride 0: the same operand each time). Results may not
/// overlap.
struct BatchStrides {
  int64_t A = 0;
  int64_t B = 0;
  int64_t C = 0;
};
void gemm_batched(Operand<float> A, Operand<float> B, Result<float> C, int64_t M, int64_t N, int64_t K, double beta,
                  int64_t count, BatchStrides strides);

}  // namespace minillm::kernels
