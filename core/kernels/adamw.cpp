#include "core/kernels/adamw.h"

#include "core/kernels/simd.h"

#include <cmath>

namespace minillm::kernels {

namespace {

struct FloatFactors {
  float gradient_scale;
  float beta1;
  float beta2;
  float one_minus_beta1;
  float one_minus_beta2;
  float eps;
  float shrink;
  float step_size;
  float v_correction;
};

// The arrays are __restrict so that the loop needs no run-time check for overlap.
MINILLM_SIMD void update(float* __restrict p, float* __restrict m, float* __restrict v, const float* __restrict grad,
                         int64_t count, const FloatFactors f) {
  for (int64_t i = 0; i < count; ++i) {
    const float g = f.gradient_scale * grad[i];
    const float m_i = f.beta1 * m[i] + f.one_minus_beta1 * g;
    const float v_i = f.beta2 * v[i] + f.one_minus_beta2 * g * g;
    const float denominator = std::sqrt(v_i) / f.v_correction + f.eps;
    m[i] = m_i;
    v[i] = v_i;
    p[i] = p[i] * f.shrink - f.step_size * m_i / denominator;
  }
}

}  // namespace

void adamw(float* p, float* m, float* v, const float* grad, int64_t count, const AdamWFactors& factors) {
  const FloatFactors f = {
      .gradient_scale = static_cast<float>(factors.gradient_scale),
      .beta1 = static_cast<float>(factors.beta1),
      .beta2 = static_cast<float>(factors.beta2),
      .one_minus_beta1 = static_cast<float>(1 - factors.beta1),
      .one_minus_beta2 = static_cast<float>(1 - factors.beta2),
      .eps = static_cast<float>(factors.eps),
      .shrink = static_cast<float>(factors.shrink),
      .step_size = static_cast<float>(factors.step_size),
      .v_correction = static_cast<float>(factors.v_correction),
  };
  update(p, m, v, grad, count, f);
}

}  // namespace minillm::kernels
