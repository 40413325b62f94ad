#include "core/kernels/bounded_glu.h"

#include "core/kernels/exp.h"
#include "core/kernels/simd.h"
#include "core/parallel.h"

#include <algorithm>

namespace minillm::kernels {

namespace {

constexpr int64_t rows_per_chunk = 8;
constexpr int64_t block = 256;  // values and slopes of a block wait on the stack, in the first-level cache

/// The factors of a block and their slopes.
struct Factors {
  float a[block];
  float a_slope[block];
  float b[block];
  float b_slope[block];
};

// --- one loop a factor; the slopes are derived in bounded_glu_reference.cpp ---

MINILLM_SIMD void clamped_gates(const float* g, float limit, float alpha, Factors& to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float m = g[i] > limit ? limit : g[i];
    const float s = fast_sigmoid(alpha * m);
    to.a[i] = m * s;
    to.a_slope[i] = g[i] > limit ? 0.0F : s + alpha * m * s * (1.0F - s);
  }
}

MINILLM_SIMD void clamped_ups(const float* u, float limit, float plus, Factors& to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float below = u[i] > limit ? limit : u[i];
    const float inside = below < -limit ? -limit : below;
    to.b[i] = inside + plus;
    to.b_slope[i] = u[i] > limit || u[i] < -limit ? 0.0F : 1.0F;
  }
}

MINILLM_SIMD void soft_gates(const float* g, float bound, Factors& to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float t = fast_tanh(g[i] / bound);
    const float s = fast_sigmoid(g[i]);
    const float value = bound * t * s;
    to.a[i] = value;
    to.a_slope[i] = (1.0F - t * t) * s + value * (1.0F - s);
  }
}

MINILLM_SIMD void soft_ups(const float* u, float bound, Factors& to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float t = fast_tanh(u[i] / bound);
    to.b[i] = bound * t;
    to.b_slope[i] = 1.0F - t * t;
  }
}

// --- what is done with them ---

MINILLM_SIMD void set_products(const float* x, const float* y, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = x[i] * y[i];
  }
}

/// to = dy * x * y, or added to it.
MINILLM_SIMD void put_gradient(const float* dy, const float* x, const float* y, float* to, int64_t count,
                               bool overwrite) {
  for (int64_t i = 0; i < count; ++i) {
    const float product = dy[i] * x[i] * y[i];
    to[i] = overwrite ? product : to[i] + product;
  }
}

void factors_of(const float* gate, const float* up, const BoundedGlu& unit, Factors& to, int64_t count) {
  const float limit = static_cast<float>(unit.limit);
  switch (unit.kind) {
    case BoundedGlu::Kind::clamp:
      clamped_gates(gate, limit, 1.0F, to, count);
      clamped_ups(up, limit, 0.0F, to, count);
      return;
    case BoundedGlu::Kind::oai:
      clamped_gates(gate, limit, static_cast<float>(unit.alpha), to, count);
      clamped_ups(up, limit, 1.0F, to, count);
      return;
    case BoundedGlu::Kind::situ:
      soft_gates(gate, static_cast<float>(unit.gate_bound), to, count);
      soft_ups(up, static_cast<float>(unit.up_bound), to, count);
      return;
  }
}

/// Calls body(r, j, count, factors) for each block of elements [j, j + count) of each row r, in parallel over rows.
template <class Body>
void for_blocks(const float* gate_up, int64_t R, int64_t f, const BoundedGlu& unit, Body body) {
  parallel_for(R, rows_per_chunk, [=, &unit](int64_t begin, int64_t end) {
    Factors factors;
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t j = 0; j < f; j += block) {
        const int64_t count = std::min(block, f - j);
        const float* gate = gate_up + r * 2 * f + j;
        factors_of(gate, gate + f, unit, factors, count);
        body(r, j, count, factors);
      }
    }
  });
}

}  // namespace

void gated_activation_forward(const float* gate_up, float* y, int64_t R, int64_t f, const BoundedGlu& unit) {
  for_blocks(gate_up, R, f, unit, [=](int64_t r, int64_t j, int64_t count, const Factors& factors) {
    set_products(factors.a, factors.b, y + r * f + j, count);
  });
}

void gated_activation_backward(const float* dy, const float* gate_up, float* d_gate_up, int64_t R, int64_t f,
                               const BoundedGlu& unit, bool overwrite) {
  for_blocks(gate_up, R, f, unit, [=](int64_t r, int64_t j, int64_t count, const Factors& factors) {
    const float* dy_r = dy + r * f + j;
    float* dgate = d_gate_up + r * 2 * f + j;
    put_gradient(dy_r, factors.b, factors.a_slope, dgate, count, overwrite);
    put_gradient(dy_r, factors.a, factors.b_slope, dgate + f, count, overwrite);
  });
}

}  // namespace minillm::kernels
