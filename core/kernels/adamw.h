#pragma once
// AdamW (Loshchilov & Hutter 2019, "Decoupled Weight Decay Regularization", algorithm 2; moments as in Kingma & Ba
// 2015).
//
//   g    = gradient_scale * grad                 gradient_scale < 1 when the gradient is clipped
//   m    = beta1 * m + (1 - beta1) * g
//   v    = beta2 * v + (1 - beta2) * g^2
//   p    = p * (1 - lr * weight_decay)
//   p    = p - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)           t counts updates from 1
//
// All arrays [count]. Elements are independent: the result is the same however the range is cut.

#include <cstdint>

namespace minillm::kernels {

/// What one update shares over all elements, in double; the kernels round each factor once to their own type.
struct AdamWFactors {
  double gradient_scale = 1;
  double beta1 = 0;
  double beta2 = 0;
  double eps = 0;
  double shrink = 1;        ///< 1 - lr * weight_decay
  double step_size = 0;     ///< lr / (1 - beta1^t)
  double v_correction = 1;  ///< sqrt(1 - beta2^t)
};

template <class T>
void adamw_reference(T* p, T* m, T* v, const T* grad, int64_t count, const AdamWFactors& factors);

/// One thread; the caller cuts the range and spreads the parts.
void adamw(float* p, float* m, float* v, const float* grad, int64_t count, const AdamWFactors& factors);

}  // namespace minillm::kernels
