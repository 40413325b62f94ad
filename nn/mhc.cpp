// Manifold-constrained hyper-connections (mHC; DeepSeek V4): the stream is n vectors a token, and each sublayer mixes
// them by a doubly stochastic matrix, which can neither blow them up nor let one die.

#include "nn/init.h"
#include "nn/residual.h"
#include "nn/sinkhorn.h"

namespace minillm {

namespace {

constexpr double mhc_eps = 1e-6;
constexpr double scale_at_start = 0.01;  // the maps start near their bases, whatever the stream is

/// scales[which] * (W u)[begin, end) + base[begin, end): [B, T, end - begin]
Var scaled_logits(Var logits, Var scales, Var base, int64_t which, int64_t begin, int64_t end) {
  return add(mul(slice(logits, -1, begin, end), slice(scales, 0, which, which + 1)), slice(base, 0, begin, end));
}

/// The stream of a token as one vector of length n d, without its scale: u = flatten(X) / rms
Var normalised(Var streams) {
  const Shape& shape = streams.shape();
  return rmsnorm(reshape(streams, {shape[0], shape[1], shape[2] * shape[3]}), mhc_eps);
}

/// sum over j of weights[j] streams[j]: weights [B, T, n], streams [B, T, n, d] -> [B, T, d]
Var weighted_sum(Var weights, Var streams) {
  const Shape& shape = streams.shape();
  Var row = reshape(weights, {shape[0], shape[1], 1, shape[2]});
  return reshape(matmul(row, streams), {shape[0], shape[1], shape[3]});
}

/// With u = flatten(X) / rms(flatten(X)) and logits = W u, split and scaled:
///   pre [n] = sigmoid(.) + mhc_eps,  post [n] = 2 sigmoid(.),  comb [n, n] = mixing_matrix(.)
///   h = sum_j pre_j X_j,  X_k <- post_k F(N(h)) + sum_j comb_jk X_j
class Mhc final : public Residual {
 public:
  Mhc(const ModelConfig& config, const Scope& scope)
      : Residual(scope),
        n_(config.residual_streams),
        maps_(scope.declare("weight", {2 * n_ + n_ * n_, n_ * config.d_model}, matrix_init())),
        base_(scope.declare("base", {2 * n_ + n_ * n_}, Init::constant(0))),
        scales_(scope.declare("scale", {3}, Init::constant(scale_at_start))),
        position_(norm_position_of(config)),
        dropout_(config.dropout) {}

  void forward(Stream& stream, const Norm& norm, const Sublayer& sublayer) const override {
    Var X = stream.x;  // [B, T, n, d]
    Tape& tape = X.tape();
    const int64_t B = X.shape()[0];
    const int64_t T = X.shape()[1];
    const int64_t d = X.shape()[3];
    const auto scope = tape.enter(path());
    Var logits = linear(normalised(X), tape.parameter(maps_));  // [B, T, 2n + n n]
    Var base = tape.parameter(base_);
    Var scales = tape.parameter(scales_);
    Var pre = add_scalar(sigmoid(scaled_logits(logits, scales, base, 0, 0, n_)), mhc_eps);
    Var post = scale(sigmoid(scaled_logits(logits, scales, base, 1, n_, 2 * n_)), 2);
    Var mixing = reshape(scaled_logits(logits, scales, base, 2, 2 * n_, 2 * n_ + n_ * n_), {B, T, n_, n_});
    Var comb = mixing_matrix(mixing, mhc_eps);
    Var written = run_sublayer(weighted_sum(pre, X), norm, sublayer, position_, dropout_);  // [B, T, d]
    Var shares = mul(reshape(post, {B, T, n_, 1}), reshape(written, {B, T, 1, d}));
    stream.x = add(matmul(transpose(comb, {0, 1, 3, 2}), X), shares);
  }

 private:
  int64_t n_;
  Parameter& maps_;    // [2n + n n, n d]
  Parameter& base_;    // [2n + n n]
  Parameter& scales_;  // [3]
  NormPosition position_;
  double dropout_;
};

/// In: n copies of the embedding. Out: sum_j sigmoid(.)_j X_j, by a map of its own.
class MhcEnds final : public StreamEnds {
 public:
  MhcEnds(const ModelConfig& config, const Scope& scope)
      : StreamEnds(scope),
        n_(config.residual_streams),
        map_(scope.declare("weight", {n_, n_ * config.d_model}, matrix_init())),
        base_(scope.declare("base", {n_}, Init::constant(0))),
        scale_(scope.declare("scale", {1}, Init::constant(scale_at_start))) {}

  Stream enter(Var x) const override { return {copies(x, n_), {}}; }

  Var leave(const Stream& stream) const override {
    Tape& tape = stream.x.tape();
    const auto scope = tape.enter(path());
    Var logits = linear(normalised(stream.x), tape.parameter(map_));
    Var pre = sigmoid(scaled_logits(logits, tape.parameter(scale_), tape.parameter(base_), 0, 0, n_));
    return weighted_sum(add_scalar(pre, mhc_eps), stream.x);
  }

 private:
  int64_t n_;
  Parameter& map_;    // [n, n d]
  Parameter& base_;   // [n]
  Parameter& scale_;  // [1]
};

}  // namespace

std::unique_ptr<Residual> make_mhc(const ModelConfig& config, const Scope& scope) {
  return std::make_unique<Mhc>(config, scope);
}

std::unique_ptr<StreamEnds> make_mhc_ends(const ModelConfig& config, const Scope& scope) {
  return std::make_unique<MhcEnds>(config, scope);
}

}  // namespace minillm
