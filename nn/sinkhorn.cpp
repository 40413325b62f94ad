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

}  // namespace minillm
