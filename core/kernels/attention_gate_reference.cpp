#include "core/kernels/attention_gate.h"

#include <cmath>

namespace minillm::kernels {

namespace {

template <class T>
T sigmoid(T x) {
  return T{1} / (T{1} + std::exp(-x));
}

}  // namespace

template <class T>
void attention_gate_forward_reference(const T* a, const T* qkv, T* y, int64_t R, const QkvLayout& layout) {
  const int64_t head_dim = layout.head_dim;
  for (int64_t r = 0; r < R; ++r) {
    for (int64_t h = 0; h < layout.n_heads; ++h) {
      const T* gate = qkv + r * layout.width() + layout.slice_offset(h) + head_dim;
      const int64_t start = (r * layout.n_heads + h) * head_dim;
      for (int64_t j = 0; j < head_dim; ++j) {
        y[start + j] = a[start + j] * sigmoid(gate[j]);
      }
    }
  }
}

// forward: y = a * s with s = sigmoid(g), and ds/dg = s * (1 - s), so
//   da = dy * s
//   dg = dy * a * s * (1 - s)
template <class T>
void attention_gate_backward_reference(const T* dy, const T* a, const T* qkv, T* da, T* dqkv, int64_t R,
                                       const QkvLayout& layout) {
  const int64_t head_dim = layout.head_dim;
  for (int64_t r = 0; r < R; ++r) {
    for (int64_t h = 0; h < layout.n_heads; ++h) {
      const int64_t gate_start = r * layout.width() + layout.slice_offset(h) + head_dim;
      const int64_t start = (r * layout.n_heads + h) * head_dim;
      for (int64_t j = 0; j < head_dim; ++j) {
        const T s = sigmoid(qkv[gate_start + j]);
        if (da != nullptr) {
          da[start + j] += dy[start + j] * s;
        }
        if (dqkv != nullptr) {
          dqkv[gate_start + j] += dy[start + j] * a[start + j] * s * (T{1} - s);
        }
      }
    }
  }
}

template void attention_gate_forward_reference(const float*, const float*, float*, int64_t, const QkvLayout&);
template void attention_gate_forward_reference(const double*, const double*, double*, int64_t, const QkvLayout&);
template void attention_gate_backward_reference(const float*, const float*, const float*, float*, float*, int64_t,
                                                const QkvLayout&);
template void attention_gate_backward_reference(const double*, const double*, const double*, double*, double*, int64_t,
                                                const QkvLayout&);

}  // namespace minillm::kernels
