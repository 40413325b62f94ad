#pragma once
// Gated units whose output is bounded: y[r,j] = a(gate[r,j]) * b(up[r,j]). SwiGLU's product grows without a bound, and
// leaves the range of a low-precision number (gate = up = 256 that of float16).
//
//   clamp  a(g) = silu(min(g, L))                    b(u) = clamp(u, -L, L)         DeepSeek V4, L = 10
//   oai    a(g) = m sigmoid(alpha m), m = min(g, L)  b(u) = clamp(u, -L, L) + 1     gpt-oss, L = 7, alpha = 1.702
//   situ   a(g) = s tanh(g/s) sigmoid(g)             b(u) = S tanh(u/S)             Kimi K3, s = 4, S = 25
//
//   dgate = dy * b(up) * a'(gate), dup = dy * a(gate) * b'(up)        a', b' are 0 beyond a limit, not at it
//
// R rows (tokens), f width. gate_up, d_gate_up [R, 2f] hold a row's gate, then its up; y, dy [R, f]. Nothing is saved:
// backward reads gate_up again, and adds to d_gate_up; the fast one overwrites it when told so.

#include <cstdint>

namespace minillm {

struct BoundedGlu {
  enum class Kind : uint8_t { clamp, oai, situ };
  Kind kind = Kind::clamp;
  double limit = 0;       ///< L of clamp and oai
  double alpha = 0;       ///< of oai
  double gate_bound = 0;  ///< s of situ
  double up_bound = 0;    ///< S of situ
};

namespace kernels {

template <class T>
void gated_activation_forward_reference(const T* gate_up, T* y, int64_t R, int64_t f, const BoundedGlu& unit);

template <class T>
void gated_activation_backward_reference(const T* dy, const T* gate_up, T* d_gate_up, int64_t R, int64_t f,
                                         const BoundedGlu& unit);

void gated_activation_forward(const float* gate_up, float* y, int64_t R, int64_t f, const BoundedGlu& unit);

void gated_activation_backward(const float* dy, const float* gate_up, float* d_gate_up, int64_t R, int64_t f,
                               const BoundedGlu& unit, bool overwrite);

}  // namespace kernels

}  // namespace minillm
