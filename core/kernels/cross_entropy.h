#pragma once
// Cross-entropy of a softmax, in nats. With N the number of counted rows (targets[r] >= 0):
//
//   m[r] = max_j x[r,j],  s[r] = sum_j exp(x[r,j] - m[r])
//   loss = 1/N * sum over counted rows of (m[r] - x[r,t] + log s[r]),  t = targets[r]
//   dx[r,j] = dloss/N * (exp(x[r,j] - m[r]) / s[r] - [j = t]);  0 in rows that are not counted
//
// The shift by m keeps every exponential in [0, 1]; a NaN among the logits makes the loss NaN. R rows, V classes.
// x (logits), dx [R, V]; targets [R], each < V (the caller checks); m and s (row_max, row_sum) [R], saved by forward
// for backward and left unset in rows that are not counted. A row's loss is in double, and so is the sum, in order of
// rows.

#include <cstdint>

namespace minillm::kernels {

/// The sum of the counted rows' losses.
template <class T>
double cross_entropy_forward_reference(const T* x, const int32_t* targets, T* row_max, T* row_sum, int64_t R,
                                       int64_t V);

/// Adds to dx; `unit` is dloss / N.
template <class T>
void cross_entropy_backward_reference(const T* x, const int32_t* targets, const T* row_max, const T* row_sum, T* dx,
                                      int64_t R, int64_t V, double unit);

/// `row_loss` [R] is scratch.
double cross_entropy_forward(const float* x, const int32_t* targets, float* row_max, float* row_sum, double* row_loss,
                             int64_t R, int64_t V);
void cross_entropy_backward(const float* x, const int32_t* targets, const float* row_max, const float* row_sum,
                            float* dx, int64_t R, int64_t V, double unit, bool overwrite);

}  // namespace minillm::kernels
