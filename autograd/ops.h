#pragma once
// Every differentiable operation, a line and a shape line each. An op checks its operands, appends one node and
// computes the value at once. Shapes: B batch, T positions, d width, V vocabulary, R = B*T rows; [..] is any leading
// shape. Unless said otherwise operands share one dtype (float32 or float64), and wrong operands throw an Error that
// names the op, both shapes, the scope and the call.

#include "autograd/tape.h"
#include "core/kernels/activation.h"
#include "core/kernels/attention.h"
#include "core/kernels/bounded_glu.h"

#include <span>
#include <vector>

namespace minillm {

// --- elementwise, with right-aligned broadcasting ---
Var add(Var a, Var b, Here here = {});      // a + b
Var sub(Var a, Var b, Here here = {});      // a - b
Var mul(Var a, Var b, Here here = {});      // a * b
Var div(Var a, Var b, Here here = {});      // a / b
Var maximum(Var a, Var b, Here here = {});  // max(a, b); where equal, half of the gradient to each

// --- elementwise, one operand ---
Var scale(Var x, double factor, Here here = {});        // factor * x
Var add_scalar(Var x, double summand, Here here = {});  // x + summand
Var pow(Var x, double exponent, Here here = {});        // x ^ exponent
Var exp(Var x, Here here = {});
Var log(Var x, Here here = {});
Var sqrt(Var x, Here here = {});
Var tanh(Var x, Here here = {});
Var sigmoid(Var x, Here here = {});
Var softplus(Var x, Here here = {});  // log(1 + e^x), to its last digits where that is near 0 or near x
Var erf(Var x, Here here = {});

// --- reductions; the reduced axes stay with extent 1 ---
Var sum(Var x, const Axes& axes, Here here = {});
Var mean(Var x, const Axes& axes, Here here = {});
Var max(Var x, int axis, Here here = {});  // where several are largest, the first gets the gradient
Var sum_all(Var x, Here here = {});        // [..] -> []
Var softmax(Var x, Here here = {});        // over the last axis
Var log_softmax(Var x, Here here = {});    // over the last axis, shifted by the maximum

// --- shape ---
Var reshape(Var x, const Shape& shape, Here here = {});                  // shares storage
Var transpose(Var x, const Axes& order, Here here = {});                 // axis i of the result is axis order[i] of x
Var slice(Var x, int axis, int64_t begin, int64_t end, Here here = {});  // [begin, end) along axis
Var expand(Var x, int axis, int64_t n, Here here = {});                  // an axis of extent 1, n times
Var concat(std::span<const Var> parts, int axis, Here here = {});
Var gather(Var x, std::span<const int32_t> index, Here here = {});  // [R, V], one column a row -> [R]
/// The k largest of each row, the largest first, of equal ones the earlier: x [R, N] -> [R, k]. `index` [R * k] is
/// filled with their columns.
Var top_k(Var x, int64_t k, std::span<int32_t> index, Here here = {});

// --- products ---
/// a [.., M, K], b [.., K, N] -> [.., M, N]; transpose_b reads b as [.., N, K]. Leading axes are equal, or b has none.
Var matmul(Var a, Var b, bool transpose_b = false, Here here = {});
/// x [.., K], weight [N, K], bias [N] or empty -> [.., N]: x weight^T + bias
Var linear(Var x, Var weight, Var bias = {}, Here here = {});

// --- fused; under Ops::composed each is built from the primitives above ---
/// table [V, d], ids in [0, V) -> [ids.size(), d]
Var embedding(Var table, std::span<const int32_t> ids, Here here = {});
/// Keeps an element with probability 1 - p and divides it by 1 - p; the identity when p = 0 or the tape is not
/// training. The draws are those of (tape.random_key(), stream), element by element.
Var dropout(Var x, double p, std::string_view stream, Here here = {});
/// x [.., d], gain [d] -> [.., d]; gain_offset 1 for the zero-centered form.
Var rmsnorm(Var x, Var gain, double eps, double gain_offset = 0, Here here = {});
/// x [.., d] / rms, without a gain.
Var rmsnorm(Var x, double eps, Here here = {});
/// x [.., d], gain [d], bias [d] -> [.., d]
Var layernorm(Var x, Var gain, Var bias, double eps, Here here = {});
/// x [.., d], gain [d], bias [d] -> [.., d], each channel normalised over all rows, whose mean and (biased) variance
/// [d] stand beside it until clear().
struct Normalized {
  Var y;
  Tensor mean;
  Tensor variance;
};
Normalized batchnorm(Var x, Var gain, Var bias, double eps, Here here = {});
Var activate(Var x, Activation kind, Here here = {});
/// gate_up [.., 2f], gate first -> [.., f]: act(gate) * up
Var gated_activation(Var gate_up, Activation kind, Here here = {});
/// The same with both factors bounded: a(gate) * b(up)
Var gated_activation(Var gate_up, const BoundedGlu& unit, Here here = {});
/// RMSNorm of every query and key slice: qkv [B, T, width], q_gain and k_gain [head_dim] -> [B, T, width]
Var qk_norm(Var qkv, Var q_gain, Var k_gain, QkvLayout layout, double eps, double gain_offset = 0, Here here = {});
/// Rotates the first 2 * pairs elements of every query and key slice, half-split pairs: qkv [B, T, width];
/// cosines, sines [T, pairs], constants of qkv's dtype -> [B, T, width]
Var rope(Var qkv, QkvLayout layout, const Tensor& cosines, const Tensor& sines, Here here = {});
/// softmax(q k^T / sqrt(head_dim) + causal mask) v: qkv [B, T, width] -> [B, T, n_heads * head_dim]; no [T, T] is
/// stored.
Var causal_attention(Var qkv, QkvLayout layout, Here here = {});
/// The same without the mask: every position sees all.
Var bidirectional_attention(Var qkv, QkvLayout layout, Here here = {});
/// What is kept of earlier positions for attention: `keys` [G, capacity, key_width] and `values`
/// [G, capacity, value_width] of G key heads, or no values where the first value_width elements of a key are its value.
struct KeptRows {
  Tensor keys;
  Tensor values = {};
  int64_t value_width = 0;
};
/// Attention of T new positions to `past` earlier ones and themselves: q [1, T, H, key_width] -> [1, T, H *
/// value_width]. The new positions' rows stand in `kept` already. No gradient.
Var past_attention(Var q, const KeptRows& kept, int64_t past, double scale, Here here = {});
/// The largest score of each head, over all queries and the keys they see; no gradient. `attended` is what one of these
/// two made of qkv. Quick after a fused one, which keeps what it needs.
std::vector<double> largest_scores(Var qkv, Var attended, const QkvLayout& layout, bool causal);
/// attended [B, T, n_heads * head_dim] * sigmoid(the gate slices of qkv): a gated layout's elementwise output gate.
Var attention_gate(Var attended, Var qkv, QkvLayout layout, Here here = {});
/// Mean over counted rows of -log softmax(logits)[target], in nats: logits [R, V], targets [R], negative = not counted
/// -> [] in float64, whatever the dtype of logits: the sum over rows is in double.
Var cross_entropy(Var logits, std::span<const int32_t> targets, Here here = {});
/// cross_entropy(linear(hidden, weight), targets) in row chunks: hidden [R, d], weight [V, d]; no [R, V] is stored.
Var linear_cross_entropy(Var hidden, Var weight, std::span<const int32_t> targets, Here here = {});

}  // namespace minillm
