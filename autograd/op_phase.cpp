#include "autograd/op_phase.h"

namespace minillm {

namespace {

struct Row {
  std::string_view op;
  Phase phase;
};

// Products move on to gemm_dx and gemm_dw themselves.
constexpr Row table[] = {
    {"linear", Phase::gemm_forward},
    {"matmul", Phase::gemm_forward},
    {"rope", Phase::attention},
    {"causal_attention", Phase::attention},
    {"bidirectional_attention", Phase::attention},
    {"attention_gate", Phase::attention},
    {"softmax", Phase::attention},
    {"qk_norm", Phase::norms},
    {"rmsnorm", Phase::norms},
    {"layernorm", Phase::norms},
    {"batchnorm", Phase::norms},
    {"swiglu", Phase::activations},
    {"geglu", Phase::activations},
    {"reglu", Phase::activations},
    {"glu", Phase::activations},
    {"bilinear", Phase::activations},
    {"bounded_glu", Phase::activations},
    {"gelu", Phase::activations},
    {"gelu_tanh", Phase::activations},
    {"relu", Phase::activations},
    {"silu", Phase::activations},
    {"softplus", Phase::activations},
    {"linear_cross_entropy", Phase::loss},
    {"cross_entropy", Phase::loss},
    {"log_softmax", Phase::loss},
    {"gather", Phase::loss},
    {"negative_mean", Phase::loss},
};

}  // namespace

Phase phase_of(std::string_view op) {
  for (const Row& row : table) {
    if (row.op == op) {
      return row.phase;
    }
  }
  return Phase::other;
}

}  // namespace minillm
