#include "core/kernels/attention_gate.h"

#include "core/kernels/exp.h"
#include "core/kernels/simd.h"
#include "core/parallel.h"

namespace minillm::kernels {

namespace {

constexpr int64_t rows_per_chunk = 32;

// A token's row: a, y, da, dy are its heads side by side, gate and dgate its first gate slice, `stride` apart.
MINILLM_SIMD void gate_row(const float* a, const float* gate, float* y, int64_t n_heads, int64_t head_dim,
                           int64_t stride) {
  for (int64_t h = 0; h < n_heads; ++h) {
    for (int64_t j = 0; j < head_dim; ++j) {
      y[h * head_dim + j] = a[h * head_dim + j] * fast_sigmoid(gate[h * stride + j]);
    }
  }
}

MINILLM_SIMD void add_da_row(const float* dy, const float* gate, float* da, int64_t n_heads, int64_t head_dim,
                             int64_t stride) {
  for (int64_t h = 0; h < n_heads; ++h) {
    for (int64_t j = 0; j < head_dim; ++j) {
      da[h * head_dim + j] += dy[h * head_dim + j] * fast_sigmoid(gate[h * stride + j]);
    }
  }
}

MINILLM_SIMD void add_dgate_row(const float* dy, const float* a, const float* gate, float* dgate, int64_t n_heads,
                                int64_t head_dim, int64_t stride) {
  for (int64_t h = 0; h < n_heads; ++h) {
    for (int64_t j = 0; j < head_dim; ++j) {
      const float s = fast_sigmoid(gate[h * stride + j]);
      dgate[h * stride + j] += dy[h * head_dim + j] * a[h * head_dim + j] * s * (1.0F - s);
    }
  }
}

}  // namespace

void attention_gate_forward(const float* a, const float* qkv, float* y, int64_t R, const QkvLayout& layout) {
  const int64_t head_dim = layout.head_dim;
  const int64_t d = layout.n_heads * head_dim;
  parallel_for(R, rows_per_chunk, [=, &layout](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* gate = qkv + r * layout.width() + head_dim;
      gate_row(a + r * d, gate, y + r * d, layout.n_heads, head_dim, layout.q_stride());
    }
  });
}

// The formulas are derived above attention_gate_backward_reference.
void attention_gate_backward(const float* dy, const float* a, const float* qkv, float* da, float* dqkv, int64_t R,
                             const QkvLayout& layout) {
  const int64_t head_dim = layout.head_dim;
  const int64_t d = layout.n_heads * head_dim;
  parallel_for(R, rows_per_chunk, [=, &layout](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t gate_start = r * layout.width() + head_dim;
      if (da != nullptr) {
        add_da_row(dy + r * d, qkv + gate_start, da + r * d, layout.n_heads, head_dim, layout.q_stride());
      }
      if (dqkv != nullptr) {
        add_dgate_row(dy + r * d, a + r * d, qkv + gate_start, dqkv + gate_start, layout.n_heads, head_dim,
                      layout.q_stride());
      }
    }
  });
}

}  // namespace minillm::kernels
