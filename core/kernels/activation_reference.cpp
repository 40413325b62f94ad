#include "core/kernels/activation.h"

#include <cmath>
#include <numbers>

namespace minillm::kernels {

namespace {

template <class T>
T sigmoid(T x) {
  return T{1} / (T{1} + std::exp(-x));
}

template <class T>
T normal_cdf(T x) {
  return std::erfc(-x / std::numbers::sqrt2_v<T>) / T{2};
}

template <class T>
T normal_density(T x) {
  const T inverse_sqrt_two_pi = std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
  return std::exp(-x * x / T{2}) * inverse_sqrt_two_pi;
}

// sqrt(2/pi) and the coefficient of gelu_tanh's inner polynomial u = root * (x + cubic x^3).
template <class T>
constexpr T root = static_cast<T>(0.79788456080286535588);
template <class T>
constexpr T cubic = static_cast<T>(0.044715);

template <class T>
T value_of(T x, Activation kind) {
  switch (kind) {
    case Activation::relu: return x < T{0} ? T{0} : x;  // a NaN stays
    case Activation::silu: return x * sigmoid(x);
    case Activation::gelu: return x * normal_cdf(x);
    case Activation::sigmoid: return sigmoid(x);
    case Activation::identity: return x;
    case Activation::gelu_tanh: break;
  }
  const T u = root<T> * (x + cubic<T> * x * x * x);
  return x / T{2} * (T{1} + std::tanh(u));
}

// silu:       y = x s, s' = s (1 - s)            y' = s + x s (1 - s)
// gelu:       y = x Phi, Phi' = density          y' = Phi + x density
// gelu_tanh:  y = x/2 (1 + t), t' = (1 - t^2) u' y' = (1 + t)/2 + x/2 (1 - t^2) u',  u' = root (1 + 3 cubic x^2)
template <class T>
T slope_of(T x, Activation kind) {
  switch (kind) {
    case Activation::relu: return x > T{0} ? T{1} : T{0};
    case Activation::silu: {
      const T s = sigmoid(x);
      return s + x * s * (T{1} - s);
    }
    case Activation::gelu: return normal_cdf(x) + x * normal_density(x);
    case Activation::sigmoid: {
      const T s = sigmoid(x);
      return s * (T{1} - s);
    }
    case Activation::identity: return T{1};
    case Activation::gelu_tanh: break;
  }
  const T u = root<T> * (x + cubic<T> * x * x * x);
  const T du = root<T> * (T{1} + T{3} * cubic<T> * x * x);
  const T t = std::tanh(u);
  return (T{1} + t) / T{2} + x / T{2} * (T{1} - t * t) * du;
}

}  // namespace

template <class T>
void activate_forward_reference(const T* x, T* y, int64_t N, Activation kind) {
  for (int64_t i = 0; i < N; ++i) {
    y[i] = value_of(x[i], kind);
  }
}

template <class T>
void activate_backward_reference(const T* dy, const T* x, T* dx, int64_t N, Activation kind) {
  for (int64_t i = 0; i < N; ++i) {
    dx[i] += dy[i] * slope_of(x[i], kind);
  }
}

template <class T>
void gated_activation_forward_reference(const T* gate_up, T* y, int64_t R, int64_t f, Activation kind) {
  for (int64_t r = 0; r < R; ++r) {
    const T* gate = gate_up + r * 2 * f;
    const T* up = gate + f;
    T* y_r = y + r * f;
    for (int64_t j = 0; j < f; ++j) {
      y_r[j] = value_of(gate[j], kind) * up[j];
    }
  }
}

template <class T>
void gated_activation_backward_reference(const T* dy, const T* gate_up, T* d_gate_up, int64_t R, int64_t f,
                                         Activation kind) {
  for (int64_t r = 0; r < R; ++r) {
    const T* dy_r = dy + r * f;
    const T* gate = gate_up + r * 2 * f;
    const T* up = gate + f;
    T* dgate = d_gate_up + r * 2 * f;
    T* dup = dgate + f;
    for (int64_t j = 0; j < f; ++j) {
      dgate[j] += dy_r[j] * up[j] * slope_of(gate[j], kind);
      dup[j] += dy_r[j] * value_of(gate[j], kind);
    }
  }
}

template void activate_forward_reference(const float*, float*, int64_t, Activation);
template void activate_forward_reference(const double*, double*, int64_t, Activation);
template void activate_backward_reference(const float*, const float*, float*, int64_t, Activation);
template void activate_backward_reference(const double*, const double*, double*, int64_t, Activation);
template void gated_activation_forward_reference(const float*, float*, int64_t, int64_t, Activation);
template void gated_activation_forward_reference(const double*, double*, int64_t, int64_t, Activation);
template void gated_activation_backward_reference(const float*, const float*, float*, int64_t, int64_t, Activation);
template void gated_activation_backward_reference(const double*, const double*, double*, int64_t, int64_t, Activation);

}  // namespace minillm::kernels
