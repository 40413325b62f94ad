#pragma once
// Cross-entropy over the vocabulary straight from the last hidden states (as cross_entropy.h, with x = H W^T), without
// a [R, V] in memory: rows go through in chunks, whose logits live in one scratch of chunk x V.
//
//   loss = 1/N * sum over counted rows of -log softmax(H[r] W^T)[targets[r]]
//   G = (softmax(H W^T) - onehot) / N,   dH = G W,   dW = G^T H
//
// The loss is a scalar, so the gradient for any upstream dloss is dloss times the gradient for 1. Forward therefore
// turns a chunk's logits into G in place and multiplies it out at once; backward only scales, and no logits are kept or
// computed twice (as in Hsu et al. 2024, "Liger Kernel: Efficient Triton Kernels for LLM Training").
//
// R rows, d width, V vocabulary. hidden, dhidden [R, d]; weight, dweight [V, d]; targets [R], each < V (the caller
// checks), negative = not counted. The size of a chunk and the order of all sums depend on R and V alone.

#include <cstdint>

namespace minillm::kernels {

/// The sum of the counted rows' losses. dhidden and dweight are overwritten with the gradients for dloss = 1, N =
/// `counted`; either may be null. `logits` holds linear_cross_entropy_scratch(R, V) floats, row_loss R doubles of
/// scratch.
double linear_cross_entropy_forward(const float* hidden, const float* weight, const int32_t* targets, float* dhidden,
                                    float* dweight, float* logits, double* row_loss, int64_t R, int64_t d, int64_t V,
                                    int64_t counted);

/// Floats of a chunk's logits: at most R rows, each longer than V by 16 to 31.
int64_t linear_cross_entropy_scratch(int64_t R, int64_t V);

/// to += factor * from, or to = factor * from when `overwrite`.
void put_scaled(const float* from, float* to, float factor, int64_t count, bool overwrite);

}  // namespace minillm::kernels
