#pragma once
// The global gradient norm and what clipping multiplies by.

#include "core/tensor.h"

namespace minillm {

/// sqrt(sum of squares) over a flat gradient buffer [elements], float32 or float64, summed in double with the same bits
/// for any number of threads. Padding is zero and does not count. NaN or infinite when some gradient is.
double gradient_norm(const Tensor& gradients);

/// min(1, grad_clip / (norm + 1e-6)); 1 when grad_clip is 0 (off).
double clip_factor(double norm, double grad_clip);

}  // namespace minillm
