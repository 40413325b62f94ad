#include "nn/sinkhorn.h"

namespace minillm {

Var sinkhorn(Var logits, double eps) {
  constexpr int rounds = 20;
  Var matrix = add_scalar(softmax(logits), eps);  // rows first
  for (int round = 0; round < rounds; ++round) {
    if (round > 0) {
      matrix = div(matrix, add_scalar(sum(matrix, {-1}), eps));
    }
    matrix = div(matrix, add_scalar(sum(matrix, {-2}), eps));
  }
  return matrix;
}

// The constant stands here so that the logits' own base may start, as all vectors do, at zero.
Var mixing_matrix(Var logits, double eps) {
  const int64_t n = logits.shape()[-1];
  Var identity =
      logits.tape().computed({n, n}, logits.dtype(), [n](int64_t i) { return i % (n + 1) == 0 ? 1.0 : 0.0; });
  return sinkhorn(add(logits, identity), eps);
}

}  // namespace minillm
