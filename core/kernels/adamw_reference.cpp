#include "core/kernels/adamw.h"

#include <cmath>

namespace minillm::kernels {

template <class T>
void adamw_reference(T* p, T* m, T* v, const T* grad, int64_t count, const AdamWFactors& factors) {
  const T gradient_scale = static_cast<T>(factors.gradient_scale);
  const T beta1 = static_cast<T>(factors.beta1);
  const T beta2 = static_cast<T>(factors.beta2);
  const T one_minus_beta1 = static_cast<T>(1 - factors.beta1);
  const T one_minus_beta2 = static_cast<T>(1 - factors.beta2);
  const T eps = static_cast<T>(factors.eps);
  const T shrink = static_cast<T>(factors.shrink);
  const T step_size = static_cast<T>(factors.step_size);
  const T v_correction = static_cast<T>(factors.v_correction);
  for (int64_t i = 0; i < count; ++i) {
    const T g = gradient_scale * grad[i];
    m[i] = beta1 * m[i] + one_minus_beta1 * g;
    v[i] = beta2 * v[i] + one_minus_beta2 * g * g;
    const T denominator = std::sqrt(v[i]) / v_correction + eps;
    p[i] = p[i] * shrink - step_size * m[i] / denominator;
  }
}

template void adamw_reference(float*, float*, float*, const float*, int64_t, const AdamWFactors&);
template void adamw_reference(double*, double*, double*, const double*, int64_t, const AdamWFactors&);

}  // namespace minillm::kernels
