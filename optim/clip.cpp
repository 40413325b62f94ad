#include "optim/clip.h"

#include "core/kernels/sum_of_squares.h"

#include <algorithm>
#include <cmath>

namespace minillm {

double gradient_norm(const Tensor& gradients) {
  const double sum = gradients.dtype == DType::float64
                         ? kernels::sum_of_squares(gradients.as<double>(), gradients.numel())
                         : kernels::sum_of_squares(gradients.as<float>(), gradients.numel());
  return std::sqrt(sum);
}

double clip_factor(double norm, double grad_clip) {
  return grad_clip > 0 ? std::min(1.0, grad_clip / (norm + 1e-6)) : 1.0;
}

}  // namespace minillm
