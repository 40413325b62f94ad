// Gated DeltaNet (Yang et al. 2025, "Gated Delta Networks"), as Qwen3-Next has it: linear attention whose state, one
// matrix a head, forgets by a gate and replaces what is stored under a key instead of adding to it.
//
// For each value head, with state S [d_k, d_v], decay g <= 0 and strength beta in (0, 1):
//
//   S <- e^g S,   delta = beta (v - S^T k),   S <- S + k delta^T,   o = S^T q
//
// Over a chunk of positions with G_i = g_1 + .. + g_i the same is a few products (i, j positions of the chunk):
//
//   A_ij = beta_i e^(G_i - G_j) k_i.k_j for j < i       Delta = (I + A)^-1 diag(beta) (V - diag(e^G) K S)
//   O = diag(e^G) Q S + tril(e^(G_i - G_j) q_i.k_j) Delta
//   S <- e^(G_C) S + K^T diag(e^(G_C - G_i)) Delta

#include "nn/attention.h"
#include "nn/head_gate.h"
#include "nn/init.h"
#include "nn/kept_rows.h"
#include "nn/linear.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace minillm {

namespace {

constexpr int64_t conv_width = 4;
constexpr int64_t chunk = 64;
constexpr double l2_eps = 1e-6;

/// x / sqrt(|x|^2 + eps) along the last axis.
Var unit(Var x) {
  return div(x, sqrt(add_scalar(sum(mul(x, x), {-1}), l2_eps)));
}

/// [n, n]: `inside` where j < i, or j <= i with the diagonal, else `outside`.
Var triangle(Tape& tape, int64_t n, bool diagonal, double inside, double outside, DType dtype) {
  return tape.computed({n, n}, dtype, [=](int64_t i) {
    const bool is_inside = i % n < i / n || (diagonal && i % n == i / n);
    return is_inside ? inside : outside;
  });
}

Var transposed(Var x) {
  return transpose(x, {0, 1, 3, 2});
}

/// Rows and columns of a batch of matrices [.., n, n] -> [.., rows, columns].
Var block(Var x, int64_t row_begin, int64_t row_end, int64_t column_begin, int64_t column_end) {
  return slice(slice(x, -2, row_begin, row_end), -1, column_begin, column_end);
}

/// (I + A)^-1 for strictly lower A [.., n, n]. Of small ones: with N = -A, N^n = 0, it is (I + N)(I + N^2)(I + N^4).
/// Of larger ones by halves, [[P, 0], [R, Q]]^-1 = [[P^-1, 0], [-Q^-1 R P^-1, Q^-1]]: the powers of a large N grow as
/// binomials and cancel in the sum, up to C(62, 31) where keys repeat.
Var inverse_of_unit_lower(Var A) {
  constexpr int64_t small = 8;
  const int64_t n = A.shape()[-1];
  Tape& tape = A.tape();
  if (n > small) {
    const int64_t half = n / 2;
    Var upper = inverse_of_unit_lower(block(A, 0, half, 0, half));
    Var lower = inverse_of_unit_lower(block(A, half, n, half, n));
    Var between = scale(matmul(matmul(lower, block(A, half, n, 0, half)), upper), -1);
    Shape nothing = A.shape();
    nothing.set(-2, half);
    nothing.set(-1, n - half);
    const Var first[] = {upper, tape.filled(nothing, 0, A.dtype())};
    const Var second[] = {between, lower};
    const Var rows[] = {concat(first, -1), concat(second, -1)};
    return concat(rows, -2);
  }
  Var ones = triangle(tape, n, true, 1, 0, A.dtype());
  Var below = triangle(tape, n, false, 1, 0, A.dtype());
  Var identity = sub(ones, below);
  Var power = scale(A, -1);
  Var inverse = add(power, identity);
  for (int64_t reach = 2; reach < n; reach *= 2) {
    power = matmul(power, power);
    inverse = add(inverse, matmul(inverse, power));
  }
  return inverse;
}

/// What the rule reads, by value head: q, k [B, H, T, d_k], v [B, H, T, d_v], g and beta [B, H, T, 1].
struct DeltaInputs {
  Var q;
  Var k;
  Var v;
  Var g;
  Var beta;

  int64_t positions() const { return q.shape()[2]; }

  DeltaInputs part(int64_t begin, int64_t end) const {
    return {slice(q, 2, begin, end), slice(k, 2, begin, end), slice(v, 2, begin, end), slice(g, 2, begin, end),
            slice(beta, 2, begin, end)};
  }
};

/// One position: the definition. Returns o [B, H, 1, d_v] and moves S [B, H, d_k, d_v] on.
Var delta_step(const DeltaInputs& in, Var& S) {
  Var decayed = mul(S, exp(in.g));
  Var delta = mul(in.beta, sub(in.v, matmul(in.k, decayed)));
  S = add(decayed, matmul(transposed(in.k), delta));
  return matmul(in.q, S);
}

/// A chunk at once. Returns O [B, H, C, d_v] and moves S on, where somebody reads it then.
Var delta_chunk(const DeltaInputs& in, Var& S, bool moves_on) {
  Tape& tape = S.tape();
  const DType dtype = S.dtype();
  const int64_t C = in.positions();
  constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
  // Running sums [B, H, C, 1]: g^T U with U the upper triangle, which a product may share among heads.
  Var lower = triangle(tape, C, true, 1, 0, dtype);
  Var G = transposed(matmul(transposed(in.g), lower, true));
  Var gaps = add(sub(G, transposed(G)), triangle(tape, C, true, 0, minus_infinity, dtype));
  Var decays = exp(gaps);  // e^(G_i - G_j) for j <= i, else 0
  Var strict = mul(decays, triangle(tape, C, false, 1, 0, dtype));
  Var A = mul(mul(matmul(in.k, in.k, true), strict), in.beta);
  Var from_start = exp(G);
  Var missing = sub(in.v, mul(from_start, matmul(in.k, S)));
  Var delta = matmul(inverse_of_unit_lower(A), mul(in.beta, missing));
  Var O = add(mul(from_start, matmul(in.q, S)), matmul(mul(matmul(in.q, in.k, true), decays), delta));
  if (moves_on) {
    Var last = slice(G, 2, C - 1, C);
    Var to_end = exp(sub(last, G));
    S = add(mul(S, exp(last)), matmul(transposed(mul(in.k, to_end)), delta));
  }
  return O;
}

class GatedDeltaNet final : public Sublayer {
 public:
  GatedDeltaNet(const ModelConfig& config, const Scope& scope)
      : Sublayer(scope),
        key_heads_(config.gdn_key_heads),
        value_heads_(config.gdn_value_heads),
        d_k_(config.gdn_key_dim),
        d_v_(config.gdn_value_dim),
        eps_(config.norm_eps),
        step_(config.gdn_form == "recurrent" ? 1 : chunk),
        gate_(gate_activation(config.gdn_gate)),
        qkvz_(scope / "in_proj_qkvz", config.d_model, key_heads_ * group_width(), matrix_init(), false),
        ba_(scope / "in_proj_ba", config.d_model, 2 * value_heads_, matrix_init(), false),
        conv_((scope / "conv1d").declare("weight", {mixed_width(), 1, conv_width}, matrix_init())),
        log_rate_(scope.declare("A_log", {value_heads_}, Init::log_uniform(16))),
        dt_bias_(scope.declare("dt_bias", {value_heads_}, Init::constant(1))),
        gain_((scope / "norm").declare("weight", {d_v_}, Init::constant(1))),
        out_(scope / "out_proj", value_heads_ * d_v_, config.d_model, residual_out_init(config), false) {}

  Var forward(Var x) const override {
    const auto scope = x.tape().enter(path());
    return x.tape().reads_on() ? for_each_sequence(x, [&](Var one) { return mix(one, &x.tape().past()); })
                               : mix(x, nullptr);
  }

 private:
  /// `past`: of the one sequence of x; null: x begins its sequences.
  Var mix(Var x, Past* past) const {
    const int64_t B = x.shape()[0];
    const int64_t T = x.shape()[1];
    Var z;
    const DeltaInputs in = inputs(x, past, z);
    const Shape state = {B, value_heads_, d_k_, d_v_};
    Var S = past != nullptr ? x.tape().constant(past->buffer(path(), 0, state, x.dtype()))
                            : x.tape().filled(state, 0, x.dtype());
    const bool one_by_one = step_ == 1 || (past != nullptr && T == 1);
    const auto read = [&](int64_t begin, int64_t end) {
      const DeltaInputs part = in.part(begin, end);
      return one_by_one ? delta_step(part, S) : delta_chunk(part, S, end < T || past != nullptr);
    };
    Var outputs = read(0, std::min(step_, T));
    if (T > step_) {
      std::vector<Var> parts = {outputs};
      for (int64_t begin = step_; begin < T; begin += step_) {
        parts.push_back(read(begin, std::min(begin + step_, T)));
      }
      outputs = concat(parts, 2);
    }
    if (past != nullptr) {
      copy_values(S.value(), past->buffer(path(), 0, state, x.dtype()));
    }
    Var o = transpose(outputs, {0, 2, 1, 3});  // [B, T, H, d_v]
    Var normed = mul(rmsnorm(o, x.tape().parameter(gain_), eps_), activate(z, gate_));
    return out_.forward(reshape(normed, {B, T, value_heads_ * d_v_}));
  }

  int64_t share() const { return value_heads_ / key_heads_; }  // value heads of a key head
  int64_t group_width() const { return 2 * d_k_ + 2 * share() * d_v_; }
  int64_t mixed_width() const { return 2 * key_heads_ * d_k_ + value_heads_ * d_v_; }

  /// [B, T, heads, width] -> [B, H, T, width], key heads repeated for their value heads.
  Var for_value_heads(Var x) const {
    const Shape shape = x.shape();
    if (shape[2] == value_heads_) {
      return transpose(x, {0, 2, 1, 3});
    }
    Var repeated = expand(reshape(x, {shape[0], shape[1], shape[2], 1, shape[3]}), 3, share());
    return transpose(reshape(repeated, {shape[0], shape[1], value_heads_, shape[3]}), {0, 2, 1, 3});
  }

  /// silu of each channel's weighted sum over its last four positions: x [B, T, channels]
  Var convolved(Var x, Past* past) const {
    Tape& tape = x.tape();
    const Shape shape = x.shape();
    const Shape edge = {shape[0], conv_width - 1, shape[2]};  // the positions in front of the first
    Var before =
        past != nullptr ? tape.constant(past->buffer(path(), 1, edge, x.dtype())) : tape.filled(edge, 0, x.dtype());
    const Var parts[] = {before, x};
    Var padded = concat(parts, 1);
    if (past != nullptr) {
      const int64_t end = padded.shape()[1];
      copy_values(slice(padded, 1, end - (conv_width - 1), end).value(), past->buffer(path(), 1, edge, x.dtype()));
    }
    Var sum;
    for (int64_t tap = 0; tap < conv_width; ++tap) {
      Var weight = reshape(slice(tape.parameter(conv_), 2, tap, tap + 1), {shape[2]});
      Var term = mul(slice(padded, 1, tap, tap + shape[1]), weight);
      sum = tap == 0 ? term : add(sum, term);
    }
    return activate(sum, Activation::silu);
  }

  /// in_proj_qkvz holds q, k, v and z of a key head side by side, in_proj_ba b and a (Qwen3-Next's layout).
  DeltaInputs inputs(Var x, Past* past, Var& z) const {
    Tape& tape = x.tape();
    const int64_t B = x.shape()[0];
    const int64_t T = x.shape()[1];
    const int64_t values = share() * d_v_;
    Var groups = reshape(qkvz_.forward(x), {B, T, key_heads_, group_width()});
    const auto columns = [&](int64_t begin, int64_t width) { return slice(groups, -1, begin, begin + width); };
    z = reshape(columns(2 * d_k_ + values, values), {B, T, value_heads_, d_v_});
    const Var mixed[] = {reshape(columns(0, d_k_), {B, T, key_heads_ * d_k_}),
                         reshape(columns(d_k_, d_k_), {B, T, key_heads_ * d_k_}),
                         reshape(columns(2 * d_k_, values), {B, T, value_heads_ * d_v_})};
    Var qkv = convolved(concat(mixed, -1), past);
    const int64_t k_begin = key_heads_ * d_k_;
    Var q = reshape(slice(qkv, -1, 0, k_begin), {B, T, key_heads_, d_k_});
    Var k = reshape(slice(qkv, -1, k_begin, 2 * k_begin), {B, T, key_heads_, d_k_});
    Var v = reshape(slice(qkv, -1, 2 * k_begin, mixed_width()), {B, T, value_heads_, d_v_});
    Var ba = reshape(ba_.forward(x), {B, T, key_heads_, 2 * share()});
    Var b = reshape(slice(ba, -1, 0, share()), {B, T, value_heads_});
    Var a = reshape(slice(ba, -1, share(), 2 * share()), {B, T, value_heads_});
    Var rate = exp(tape.parameter(log_rate_));
    Var g = scale(mul(rate, softplus(add(a, tape.parameter(dt_bias_)))), -1);
    const auto one_a_head = [&](Var values_by_head) {
      return reshape(transpose(values_by_head, {0, 2, 1}), {B, value_heads_, T, 1});
    };
    return {.q = for_value_heads(scale(unit(q), 1 / std::sqrt(static_cast<double>(d_k_)))),
            .k = for_value_heads(unit(k)),
            .v = for_value_heads(v),
            .g = one_a_head(g),
            .beta = one_a_head(sigmoid(b))};
  }

  int64_t key_heads_;
  int64_t value_heads_;
  int64_t d_k_;
  int64_t d_v_;
  double eps_;
  int64_t step_;  // positions at a time
  Activation gate_;
  Linear qkvz_;
  Linear ba_;
  Parameter& conv_;      // [channels, 1, 4]
  Parameter& log_rate_;  // "A_log" [value heads]
  Parameter& dt_bias_;   // [value heads]
  Parameter& gain_;      // [d_v]
  Linear out_;
};

}  // namespace

/// A decoder keeps the states and the last inputs of the convolution.
MixerCost gdn_cost(const ModelConfig& config, int64_t) {
  const int64_t channels =
      2 * config.gdn_key_heads * config.gdn_key_dim + config.gdn_value_heads * config.gdn_value_dim;
  const int64_t values = config.gdn_value_heads * config.gdn_value_dim;
  const int64_t state = config.gdn_value_heads * config.gdn_key_dim * config.gdn_value_dim;
  const bool is_chunked = config.gdn_form == "chunked";
  // in_proj_qkvz, the convolution's input and result, what out_proj reads and the state's output before its norm. Then
  // of each position the state before and behind it, or of each chunk a dozen matrices [C, C] a head.
  const int64_t positions = std::min(chunk, config.max_seq_len);
  const int64_t of_rule = is_chunked ? 12 * config.gdn_value_heads * positions : 2 * state;
  return {.saved_values = 3 * channels + 3 * values + of_rule,
          .state_values = state,
          .recent_values = (conv_width - 1) * channels};
}

std::unique_ptr<Sublayer> make_gdn(const ModelConfig& config, const Scope& block, const RopeTable&, int64_t) {
  return std::make_unique<GatedDeltaNet>(config, block / "linear_attn");
}

}  // namespace minillm
