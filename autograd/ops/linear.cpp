// y = x weight^T + bias

#include "autograd/decoding_weights.h"
#include "autograd/op_support.h"
#include "core/kernels/gemm.h"
#include "core/kernels/reduce.h"
#include "core/kernels/rows.h"
#include "core/phase.h"

namespace minillm {

namespace {

using kernels::Operand;
using kernels::Result;

template <class T>
void product(const Tape& tape, Operand<T> A, Operand<T> B, Result<T> C, int64_t M, int64_t N, int64_t K, double beta) {
  if constexpr (std::is_same_v<T, float>) {
    if (tape.fast()) {
      kernels::gemm(A, B, C, M, N, K, beta);
      return;
    }
  }
  kernels::gemm_reference(A, B, C, M, N, K, beta);
}

/// What a decoder multiplies `rows` rows by; null: the weight as it is.
const kernels::DecodingMatrix* decoding_matrix(const Tape& tape, Var weight, int64_t rows) {
  const DecodingWeights* all = tape.options().decoding;
  const kernels::DecodingMatrix* matrix = all != nullptr && tape.fast() ? all->find(weight.value()) : nullptr;
  return matrix != nullptr && matrix->is_for(rows) ? matrix : nullptr;
}

template <class T>
struct LinearNode final : Node {
  NodeId x;
  NodeId weight;
  NodeId bias = -1;  // -1: none

  void backward(Tape& tape) override;
};

template <class T>
Var linear_fused(Var x, Var weight, Var bias, Here here) {
  Tape& tape = x.tape();
  const int64_t R = rows_of(x.shape());
  const int64_t K = x.shape()[-1];
  const int64_t N = weight.shape()[0];
  Shape shape = x.shape();
  shape.set(-1, N);
  const Var operands[] = {x, weight, bias};
  auto& node = tape.make_n<LinearNode<T>>("linear", {operands, bias ? 3U : 2U}, shape, x.dtype(), here);
  node.x = tape.save(x);
  node.weight = tape.save(weight);
  const Operand<T> X = {x.value().as<T>(), K, false};
  const Operand<T> W = {weight.value().as<T>(), K, true};
  const Result<T> Y = {node.value.template as<T>(), N};
  node.bias = bias ? bias.id() : -1;
  if (bias) {
    kernels::copy_row_to_all(bias.value().as<T>(), Y.data, R, N);
  }
  if constexpr (std::is_same_v<T, float>) {
    if (const kernels::DecodingMatrix* matrix = decoding_matrix(tape, weight, R)) {
      matrix->multiply(X.data, R, Y.data, static_cast<bool>(bias));
      return tape.var(node);
    }
  }
  product(tape, X, W, Y, R, N, K, bias ? 1.0 : 0.0);
  return tape.var(node);
}

// forward: y = x W^T + b, so
//   dx = dy W          [R, K] = [R, N] [N, K]
//   dW = dy^T x        [N, K] = [N, R] [R, K]
//   db = sum over rows of dy
template <class T>
void LinearNode<T>::backward(Tape& tape) {
  const int64_t R = rows_of(value.shape);
  const int64_t N = value.shape[-1];
  const int64_t K = tape.shape(x)[-1];
  const T* dy = grad.as<T>();
  if (const GradientTarget dx = tape.gradient_target(x)) {
    const InPhase part(Phase::gemm_dx);
    const Operand<T> W = {tape.value(weight).as<T>(), K, false};
    product(tape, {dy, N, false}, W, {dx.tensor.as<T>(), K}, R, K, N, dx.fresh ? 0.0 : 1.0);
  }
  if (const GradientTarget dW = tape.gradient_target(weight)) {
    const InPhase part(Phase::gemm_dw);
    const Operand<T> X = {tape.value(x).as<T>(), K, false};
    product(tape, {dy, N, true}, X, {dW.tensor.as<T>(), K}, N, K, R, dW.fresh ? 0.0 : 1.0);
  }
  if (bias >= 0) {
    const InPhase part(Phase::gemm_dw);
    if (const Tensor db = tape.gradient(bias)) {
      kernels::add_rows_to_one(dy, db.as<T>(), R, N);
    }
  }
}

}  // namespace

Var linear(Var x, Var weight, Var bias, Here here) {
  Tape& tape = x.tape();
  check_op(x.shape().rank() >= 1 && weight.shape().rank() == 2 && x.shape()[-1] == weight.shape()[1], "linear", tape,
           here, "the last axis of x must be the weight's columns; found x {}, weight {}", x.shape(), weight.shape());
  check_op(x.dtype() == weight.dtype() && (!bias || x.dtype() == bias.dtype()), "linear", tape, here,
           "operands must share a dtype; found x {}, weight {}", x.dtype(), weight.dtype());
  check_op(!bias || bias.shape() == Shape{weight.shape()[0]}, "linear", tape, here,
           "the bias must have one element for each row of the weight; found weight {}, bias {}", weight.shape(),
           bias ? bias.shape() : Shape{});
  if (tape.composed()) {
    Var product = matmul(x, weight, true);
    return bias ? add(product, bias) : product;
  }
  return x.dtype() == DType::float64 ? linear_fused<double>(x, weight, bias, here)
                                     : linear_fused<float>(x, weight, bias, here);
}

}  // namespace minillm
