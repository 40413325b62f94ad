// C = A B, or A B^T, over any leading axes.

#include "autograd/op_support.h"
#include "core/kernels/gemm.h"
#include "core/phase.h"

namespace minillm {

namespace {

using kernels::BatchStrides;
using kernels::Operand;
using kernels::Result;

/// `count` products [M, K] [K, N]. When b has no leading axes, a's are rows of one product and count is 1.
struct ProductSizes {
  int64_t count = 1;
  int64_t M = 0;
  int64_t N = 0;
  int64_t K = 0;
};

ProductSizes sizes_of(const Shape& a, const Shape& b, bool transpose_b) {
  ProductSizes sizes;
  sizes.M = a[-2];
  sizes.K = a[-1];
  sizes.N = transpose_b ? b[-2] : b[-1];
  int64_t& leading = b.rank() == 2 ? sizes.M : sizes.count;
  for (int axis = 0; axis + 2 < a.rank(); ++axis) {
    leading *= a[axis];
  }
  return sizes;
}

/// C [M, N] = beta * C + op(A) op(B), `count` times; all three are dense, one product after the other.
template <class T>
void products(const Tape& tape, Operand<T> A, Operand<T> B, Result<T> C, ProductSizes sizes, double beta) {
  const BatchStrides strides = {sizes.M * sizes.K, sizes.K * sizes.N, sizes.M * sizes.N};
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::gemm_batched(A, B, C, sizes.M, sizes.N, sizes.K, beta, sizes.count, strides);
      return;
    }
  }
  for (int64_t i = 0; i < sizes.count; ++i) {
    kernels::gemm_reference(A, B, C, sizes.M, sizes.N, sizes.K, beta);
    A.data += strides.A;
    B.data += strides.B;
    C.data += strides.C;
  }
}

template <class T>
struct MatmulNode final : Node {
  NodeId a;
  NodeId b;
  bool transpose_b;

  void backward(Tape& tape) override;
};

template <class T>
Var matmul_of(Var a, Var b, bool transpose_b, Here here) {
  Tape& tape = a.tape();
  const ProductSizes sizes = sizes_of(a.shape(), b.shape(), transpose_b);
  Shape shape = a.shape();
  shape.set(-1, sizes.N);
  auto& node = tape.make<MatmulNode<T>>("matmul", {a, b}, shape, a.dtype(), here);
  node.a = tape.save(a);
  node.b = tape.save(b);
  node.transpose_b = transpose_b;
  const Operand<T> A = {a.value().as<T>(), a.shape()[-1], false};
  const Operand<T> B = {b.value().as<T>(), b.shape()[-1], transpose_b};
  products(tape, A, B, {node.value.template as<T>(), sizes.N}, sizes, 0.0);
  return tape.var(node);
}

// forward: C = A B            so  dA = dC B^T   [M, K] = [M, N] [N, K]     dB = A^T dC   [K, N] = [K, M] [M, N]
// forward: C = A B^T          so  dA = dC B                                dB = dC^T A   [N, K] = [N, M] [M, K]
template <class T>
void MatmulNode<T>::backward(Tape& tape) {
  const Tensor& A_value = tape.value(a);
  const Tensor& B_value = tape.value(b);
  const auto [count, M, N, K] = sizes_of(A_value.shape, B_value.shape, transpose_b);
  const int64_t B_columns = B_value.shape[-1];
  const T* dC = grad.as<T>();
  if (const GradientTarget dA = tape.gradient_target(a)) {
    const InPhase part(Phase::gemm_dx);
    const Operand<T> B = {B_value.as<T>(), B_columns, !transpose_b};
    products(tape, {dC, N, false}, B, {dA.tensor.as<T>(), K}, {count, M, K, N}, dA.fresh ? 0.0 : 1.0);
  }
  const GradientTarget dB = tape.gradient_target(b);
  if (!dB) {
    return;
  }
  const InPhase part(Phase::gemm_dw);
  const double beta = dB.fresh ? 0.0 : 1.0;
  const Result<T> dB_sum = {dB.tensor.as<T>(), B_columns};
  if (transpose_b) {
    products(tape, {dC, N, true}, {A_value.as<T>(), K, false}, dB_sum, {count, N, K, M}, beta);
  } else {
    products(tape, {A_value.as<T>(), K, true}, {dC, N, false}, dB_sum, {count, K, N, M}, beta);
  }
}

bool shapes_fit(const Shape& a, const Shape& b, bool transpose_b) {
  if (a.rank() < 2 || b.rank() < 2 || (b.rank() != 2 && b.rank() != a.rank())) {
    return false;
  }
  for (int axis = 0; axis + 2 < b.rank(); ++axis) {
    if (a[axis] != b[axis]) {
      return false;
    }
  }
  return a[-1] == (transpose_b ? b[-1] : b[-2]);
}

}  // namespace

Var matmul(Var a, Var b, bool transpose_b, Here here) {
  check_op(a.dtype() == b.dtype(), "matmul", a.tape(), here, "operands must share a dtype; found {} and {}", a.dtype(),
           b.dtype());
  check_op(shapes_fit(a.shape(), b.shape(), transpose_b), "matmul", a.tape(), here,
           "a [.., M, K] and b {} must agree in K and in the leading axes, which b may lack; found a {}, b {}",
           transpose_b ? "[.., N, K]" : "[.., K, N]", a.shape(), b.shape());
  return a.dtype() == DType::float64 ? matmul_of<double>(a, b, transpose_b, here)
                                     : matmul_of<float>(a, b, transpose_b, here);
}

}  // namespace minillm
