#include "core/kernels/softmax.h"

#include <cmath>
#include <limits>

namespace minillm::kernels {

namespace {

template <class T>
T largest(const T* x, int64_t N) {
  T m = -std::numeric_limits<T>::infinity();
  for (int64_t j = 0; j < N; ++j) {
    m = x[j] > m ? x[j] : m;
  }
  return m;
}

/// -inf - -inf is NaN: a row without a finite value is shifted by 0 instead. A NaN in the row stays one.
template <class T>
T shift_of(const T* x, int64_t N) {
  const T m = largest(x, N);
  return m == -std::numeric_limits<T>::infinity() ? T{0} : m;
}

}  // namespace

template <class T>
void softmax_forward_reference(const T* x, T* y, int64_t R, int64_t N) {
  for (int64_t r = 0; r < R; ++r) {
    const T* x_r = x + r * N;
    T* y_r = y + r * N;
    const T shift = shift_of(x_r, N);
    T sum = 0;
    for (int64_t j = 0; j < N; ++j) {
      y_r[j] = std::exp(x_r[j] - shift);
      sum += y_r[j];
    }
    const T inverse = sum == T{0} ? T{0} : T{1} / sum;
    for (int64_t j = 0; j < N; ++j) {
      y_r[j] *= inverse;
    }
  }
}

// forward: y_j = exp(x_j - m) / s, so dy_k/dx_j = y_k ([j = k] - y_j):
//   dx_j = y_j (dy_j - sum_k dy_k y_k)
template <class T>
void softmax_backward_reference(const T* dy, const T* y, T* dx, int64_t R, int64_t N) {
  for (int64_t r = 0; r < R; ++r) {
    const T* dy_r = dy + r * N;
    const T* y_r = y + r * N;
    T* dx_r = dx + r * N;
    T dot = 0;
    for (int64_t j = 0; j < N; ++j) {
      dot += dy_r[j] * y_r[j];
    }
    for (int64_t j = 0; j < N; ++j) {
      dx_r[j] += y_r[j] * (dy_r[j] - dot);
    }
  }
}

template <class T>
void log_softmax_forward_reference(const T* x, T* y, int64_t R, int64_t N) {
  for (int64_t r = 0; r < R; ++r) {
    const T* x_r = x + r * N;
    T* y_r = y + r * N;
    const T shift = shift_of(x_r, N);
    T sum = 0;
    for (int64_t j = 0; j < N; ++j) {
      sum += std::exp(x_r[j] - shift);
    }
    const T log_sum = sum == T{0} ? T{0} : std::log(sum);
    for (int64_t j = 0; j < N; ++j) {
      y_r[j] = x_r[j] - shift - log_sum;
    }
  }
}

// forward: y_j = x_j - m - log s, so dy_k/dx_j = [j = k] - exp(y_j):
//   dx_j = dy_j - exp(y_j) sum_k dy_k          nothing is divided by a probability, so it stays finite
template <class T>
void log_softmax_backward_reference(const T* dy, const T* y, T* dx, int64_t R, int64_t N) {
  for (int64_t r = 0; r < R; ++r) {
    const T* dy_r = dy + r * N;
    const T* y_r = y + r * N;
    T* dx_r = dx + r * N;
    T sum = 0;
    for (int64_t j = 0; j < N; ++j) {
      sum += dy_r[j];
    }
    for (int64_t j = 0; j < N; ++j) {
      dx_r[j] += dy_r[j] - std::exp(y_r[j]) * sum;
    }
  }
}

template void softmax_forward_reference(const float*, float*, int64_t, int64_t);
template void softmax_forward_reference(const double*, double*, int64_t, int64_t);
template void softmax_backward_reference(const float*, const float*, float*, int64_t, int64_t);
template void softmax_backward_reference(const double*, const double*, double*, int64_t, int64_t);
template void log_softmax_forward_reference(const float*, float*, int64_t, int64_t);
template void log_softmax_forward_reference(const double*, double*, int64_t, int64_t);
template void log_softmax_backward_reference(const float*, const float*, float*, int64_t, int64_t);
template void log_softmax_backward_reference(const double*, const double*, double*, int64_t, int64_t);

}  // namespace minillm::kernels
