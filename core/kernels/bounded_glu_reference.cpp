#include "core/kernels/bounded_glu.h"

#include <algorithm>
#include <cmath>

namespace minillm::kernels {

namespace {

/// A factor of the product, and its slope.
template <class T>
struct Factor {
  T value;
  T slope;
};

template <class T>
T sigmoid(T x) {
  return T{1} / (T{1} + std::exp(-x));
}

/// m sigmoid(alpha m), m = min(g, limit): with s = sigmoid(alpha m) the slope is s + alpha m s (1 - s).
template <class T>
Factor<T> clamped_gate(T g, T limit, T alpha) {
  const T m = g > limit ? limit : g;  // a NaN stays
  const T s = sigmoid(alpha * m);
  return {m * s, g > limit ? T{0} : s + alpha * m * s * (T{1} - s)};
}

template <class T>
Factor<T> clamped_up(T u, T limit, T plus) {
  if (u > limit) {
    return {limit + plus, T{0}};
  }
  if (u < -limit) {
    return {-limit + plus, T{0}};
  }
  return {u + plus, T{1}};
}

/// bound tanh(x / bound): the slope is 1 - tanh^2.
template <class T>
Factor<T> soft_bound(T x, T bound) {
  const T t = std::tanh(x / bound);
  return {bound * t, T{1} - t * t};
}

template <class T>
Factor<T> gate_factor(T g, const BoundedGlu& unit) {
  const T limit = static_cast<T>(unit.limit);
  switch (unit.kind) {
    case BoundedGlu::Kind::clamp: return clamped_gate(g, limit, T{1});
    case BoundedGlu::Kind::oai: return clamped_gate(g, limit, static_cast<T>(unit.alpha));
    case BoundedGlu::Kind::situ: break;
  }
  const Factor<T> bound = soft_bound(g, static_cast<T>(unit.gate_bound));
  const T s = sigmoid(g);
  return {bound.value * s, bound.slope * s + bound.value * s * (T{1} - s)};
}

template <class T>
Factor<T> up_factor(T u, const BoundedGlu& unit) {
  const T limit = static_cast<T>(unit.limit);
  switch (unit.kind) {
    case BoundedGlu::Kind::clamp: return clamped_up(u, limit, T{0});
    case BoundedGlu::Kind::oai: return clamped_up(u, limit, T{1});
    case BoundedGlu::Kind::situ: break;
  }
  return soft_bound(u, static_cast<T>(unit.up_bound));
}

}  // namespace

template <class T>
void gated_activation_forward_reference(const T* gate_up, T* y, int64_t R, int64_t f, const BoundedGlu& unit) {
  for (int64_t r = 0; r < R; ++r) {
    const T* gate = gate_up + r * 2 * f;
    const T* up = gate + f;
    for (int64_t j = 0; j < f; ++j) {
      y[r * f + j] = gate_factor(gate[j], unit).value * up_factor(up[j], unit).value;
    }
  }
}

template <class T>
void gated_activation_backward_reference(const T* dy, const T* gate_up, T* d_gate_up, int64_t R, int64_t f,
                                         const BoundedGlu& unit) {
  for (int64_t r = 0; r < R; ++r) {
    const T* dy_r = dy + r * f;
    const T* gate = gate_up + r * 2 * f;
    const T* up = gate + f;
    T* dgate = d_gate_up + r * 2 * f;
    T* dup = dgate + f;
    for (int64_t j = 0; j < f; ++j) {
      const Factor<T> a = gate_factor(gate[j], unit);
      const Factor<T> b = up_factor(up[j], unit);
      dgate[j] += dy_r[j] * b.value * a.slope;
      dup[j] += dy_r[j] * a.value * b.slope;
    }
  }
}

template void gated_activation_forward_reference(const float*, float*, int64_t, int64_t, const BoundedGlu&);
template void gated_activation_forward_reference(const double*, double*, int64_t, int64_t, const BoundedGlu&);
template void gated_activation_backward_reference(const float*, const float*, float*, int64_t, int64_t,
                                                  const BoundedGlu&);
template void gated_activation_backward_reference(const double*, const double*, double*, int64_t, int64_t,
                                                  const BoundedGlu&);

}  // namespace minillm::kernels
