#include "core/kernels/activation.h"

#include "core/kernels/exp.h"
#include "core/kernels/normal.h"
#include "core/kernels/simd.h"
#include "core/parallel.h"

#include <algorithm>

namespace minillm::kernels {

namespace {

constexpr int64_t elements_per_chunk = 16384;
constexpr int64_t rows_per_chunk = 8;
constexpr int64_t block = 256;  // values and slopes of a block wait on the stack, in the first-level cache

constexpr float root = 0.797884561F;  // sqrt(2 / pi)
constexpr float cubic = 0.044715F;

// --- one loop a kind: values, and values with slopes; the slopes are derived in activation_reference.cpp ---

MINILLM_SIMD void relu_values(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    y[i] = x[i] < 0.0F ? 0.0F : x[i];
  }
}

MINILLM_SIMD void silu_values(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    y[i] = x[i] * fast_sigmoid(x[i]);
  }
}

MINILLM_SIMD void gelu_values(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    y[i] = x[i] * fast_normal(x[i]).cdf;
  }
}

// (1 + tanh u) / 2 = sigmoid(2 u), which has no cancellation where tanh u is near -1.
MINILLM_SIMD void gelu_tanh_values(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float u = root * (x[i] + cubic * x[i] * x[i] * x[i]);
    y[i] = x[i] * fast_sigmoid(2.0F * u);
  }
}

MINILLM_SIMD void sigmoid_values(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    y[i] = fast_sigmoid(x[i]);
  }
}

MINILLM_SIMD void relu_slopes(const float* x, float* y, float* slope, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    y[i] = x[i] < 0.0F ? 0.0F : x[i];
    slope[i] = x[i] > 0.0F ? 1.0F : 0.0F;
  }
}

MINILLM_SIMD void silu_slopes(const float* x, float* y, float* slope, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float s = fast_sigmoid(x[i]);
    const float value = x[i] * s;
    y[i] = value;
    slope[i] = s + value * (1.0F - s);
  }
}

MINILLM_SIMD void gelu_slopes(const float* x, float* y, float* slope, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const Normal normal = fast_normal(x[i]);
    y[i] = x[i] * normal.cdf;
    slope[i] = normal.cdf + x[i] * normal.density;
  }
}

MINILLM_SIMD void sigmoid_slopes(const float* x, float* y, float* slope, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float s = fast_sigmoid(x[i]);
    y[i] = s;
    slope[i] = s * (1.0F - s);
  }
}

// d sigmoid(2u) / dx = s (1 - s) 2 u'
MINILLM_SIMD void gelu_tanh_slopes(const float* x, float* y, float* slope, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float square = x[i] * x[i];
    const float u = root * (x[i] + cubic * square * x[i]);
    const float du = root * (1.0F + 3.0F * cubic * square);
    const float s = fast_sigmoid(2.0F * u);
    const float value = x[i] * s;
    y[i] = value;
    slope[i] = s + value * (1.0F - s) * 2.0F * du;
  }
}

// --- what is done with them ---

MINILLM_SIMD void multiply_by(const float* factor, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    y[i] *= factor[i];
  }
}

MINILLM_SIMD void set_product(const float* a, const float* b, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    y[i] = a[i] * b[i];
  }
}

MINILLM_SIMD void add_product(const float* a, const float* b, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    y[i] += a[i] * b[i];
  }
}

void values_of(Activation kind, const float* x, float* y, int64_t count) {
  switch (kind) {
    case Activation::relu: return relu_values(x, y, count);
    case Activation::silu: return silu_values(x, y, count);
    case Activation::gelu: return gelu_values(x, y, count);
    case Activation::gelu_tanh: return gelu_tanh_values(x, y, count);
    case Activation::sigmoid: return sigmoid_values(x, y, count);
    case Activation::identity: std::copy_n(x, count, y); return;
  }
}

void slopes_of(Activation kind, const float* x, float* y, float* slope, int64_t count) {
  switch (kind) {
    case Activation::relu: return relu_slopes(x, y, slope, count);
    case Activation::silu: return silu_slopes(x, y, slope, count);
    case Activation::gelu: return gelu_slopes(x, y, slope, count);
    case Activation::gelu_tanh: return gelu_tanh_slopes(x, y, slope, count);
    case Activation::sigmoid: return sigmoid_slopes(x, y, slope, count);
    case Activation::identity:
      std::copy_n(x, count, y);
      std::fill_n(slope, count, 1.0F);
      return;
  }
}

void put_product(const float* a, const float* b, float* y, int64_t count, bool overwrite) {
  if (overwrite) {
    set_product(a, b, y, count);
  } else {
    add_product(a, b, y, count);
  }
}

}  // namespace

void activate_forward(const float* x, float* y, int64_t N, Activation kind) {
  parallel_for(N, elements_per_chunk,
               [=](int64_t begin, int64_t end) { values_of(kind, x + begin, y + begin, end - begin); });
}

void activate_backward(const float* dy, const float* x, float* dx, int64_t N, Activation kind, bool overwrite) {
  parallel_for(N, elements_per_chunk, [=](int64_t begin, int64_t end) {
    float value[block];
    float slope[block];
    for (int64_t i = begin; i < end; i += block) {
      const int64_t count = std::min(block, end - i);
      slopes_of(kind, x + i, value, slope, count);
      put_product(dy + i, slope, dx + i, count, overwrite);
    }
  });
}

void gated_activation_forward(const float* gate_up, float* y, int64_t R, int64_t f, Activation kind) {
  parallel_for(R, rows_per_chunk, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* gate = gate_up + r * 2 * f;
      const float* up = gate + f;
      values_of(kind, gate, y + r * f, f);
      multiply_by(up, y + r * f, f);
    }
  });
}

void gated_activation_backward(const float* dy, const float* gate_up, float* d_gate_up, int64_t R, int64_t f,
                               Activation kind, bool overwrite) {
  parallel_for(R, rows_per_chunk, [=](int64_t begin, int64_t end) {
    float value[block];
    float slope[block];
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t j = 0; j < f; j += block) {
        const int64_t count = std::min(block, f - j);
        const float* dy_r = dy + r * f + j;
        const float* gate = gate_up + r * 2 * f + j;
        const float* up = gate + f;
        float* dgate = d_gate_up + r * 2 * f + j;
        float* dup = dgate + f;
        slopes_of(kind, gate, value, slope, count);
        put_product(dy_r, value, dup, count, overwrite);
        multiply_by(up, slope, count);
        put_product(dy_r, slope, dgate, count, overwrite);
      }
    }
  });
}

}  // namespace minillm::kernels
