#pragma once
// Pointwise activations and their gated form (Shazeer 2020, "GLU Variants Improve Transformer").
//
//   y[i]   = act(x[i])                              dx[i] = dy[i] * act'(x[i])
//   y[r,j] = act(gate[r,j]) * up[r,j]               dgate = dy * up * act'(gate), dup = dy * act(gate)
//
// N elements; R rows (tokens), f width. gate_up, d_gate_up [R, 2f] hold a row's gate, then its up; y, dy [R, f].
// Nothing is saved: backward reads x again. Reference backwards add to dx; the fast ones overwrite it when told so.

#include <cstdint>

namespace minillm {

/// relu   max(0, x), with slope 0 at 0
/// silu   x * sigmoid(x)
/// gelu   x * (1 + erf(x / sqrt 2)) / 2                              (Hendrycks & Gimpel 2016)
/// gelu_tanh  x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))      (its published approximation)
/// sigmoid   the gate of GLU (Dauphin et al. 2016)
/// identity   x: the bilinear unit's
enum class Activation : uint8_t { relu, silu, gelu, gelu_tanh, sigmoid, identity };

namespace kernels {

/// "relu", "silu", ...: the name of the op's nodes.
inline const char* name_of(Activation kind) {
  switch (kind) {
    case Activation::relu: return "relu";
    case Activation::silu: return "silu";
    case Activation::gelu: return "gelu";
    case Activation::gelu_tanh: return "gelu_tanh";
    case Activation::sigmoid: return "sigmoid";
    case Activation::identity: return "identity";
  }
  return "activation";
}

/// The same for act(gate) * up: "swiglu" and its relatives.
inline const char* gated_name_of(Activation kind) {
  switch (kind) {
    case Activation::relu: return "reglu";
    case Activation::silu: return "swiglu";
    case Activation::gelu: return "geglu";
    case Activation::gelu_tanh: return "geglu_tanh";
    case Activation::sigmoid: return "glu";
    case Activation::identity: return "bilinear";
  }
  return "gated_activation";
}

template <class T>
void activate_forward_reference(const T* x, T* y, int64_t N, Activation kind);

template <class T>
void activate_backward_reference(const T* dy, const T* x, T* dx, int64_t N, Activation kind);

template <class T>
void gated_activation_forward_reference(const T* gate_up, T* y, int64_t R, int64_t f, Activation kind);

template <class T>
void gated_activation_backward_reference(const T* dy, const T* gate_up, T* d_gate_up, int64_t R, int64_t f,
                                         Activation kind);

void activate_forward(const float* x, float* y, int64_t N, Activation kind);
void activate_backward(const float* dy, const float* x, float* dx, int64_t N, Activation kind, bool overwrite);

void gated_activation_forward(const float* gate_up, float* y, int64_t R, int64_t f, Activation kind);
void gated_activation_backward(const float* dy, const float* gate_up, float* d_gate_up, int64_t R, int64_t f,
                               Activation kind, bool overwrite);

}  // namespace kernels

}  // namespace minillm
