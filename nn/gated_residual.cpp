// Gated Residual (Qwen3.8-Flash-Next): C branches a token, read through a gate for each channel and written through a
// gate for each branch.

#include "nn/init.h"
#include "nn/residual.h"

namespace minillm {

namespace {

/// Reads the branches x_c, c < C:
///   n_c = x_c / rms(x_c) * (1 + gamma_c),  t = silu(W_down n / C),  r = sigmoid(W_up t)
///   read = 1/C sum_c r_c * n_c
class BranchReader final : public Module {
 public:
  BranchReader(const ModelConfig& config, const Scope& scope)
      : Module(scope),
        C_(config.residual_streams),
        d_(config.d_model),
        eps_(config.norm_eps),
        gains_((scope / "norm").declare("weight", {C_ * d_}, Init::constant(0))),
        down_((scope / "down_proj").declare("weight", {config.residual_rank, C_ * d_}, matrix_init())),
        up_((scope / "up_proj").declare("weight", {C_ * d_, config.residual_rank}, matrix_init())) {}

  /// x [B, T, C, d] -> n [B, T, C d]
  Var normalised(Var x) const {
    Tape& tape = x.tape();
    const Shape& shape = x.shape();
    Var unit = rmsnorm(x, eps_);
    return mul(reshape(unit, {shape[0], shape[1], C_ * d_}), add_scalar(tape.parameter(gains_), 1));
  }

  /// n [B, T, C d] -> [B, T, d]
  Var read(Var n) const {
    Tape& tape = n.tape();
    Var t = activate(linear(scale(n, share()), tape.parameter(down_)), Activation::silu);
    Var gated = mul(sigmoid(linear(t, tape.parameter(up_))), n);
    const Shape& shape = n.shape();
    return reshape(mean(reshape(gated, {shape[0], shape[1], C_, d_}), {2}), {shape[0], shape[1], d_});
  }

  double share() const { return 1 / static_cast<double>(C_); }

 private:
  int64_t C_;
  int64_t d_;
  double eps_;
  Parameter& gains_;  // [C d], stored as gain - 1
  Parameter& down_;   // [rank, C d]
  Parameter& up_;     // [C d, rank]
};

/// x_c <- x_c + s_c F(read),  s = 2 sigmoid(W_inject n / C)
class GatedResidual final : public Residual {
 public:
  GatedResidual(const ModelConfig& config, const Scope& scope)
      : Residual(scope),
        C_(config.residual_streams),
        reader_(config, scope),
        inject_((scope / "inject_proj").declare("weight", {C_, C_ * config.d_model}, matrix_init())),
        dropout_(config.dropout) {}

  void forward(Stream& stream, const Norm&, const Sublayer& sublayer) const override {
    Var x = stream.x;  // [B, T, C, d]
    Tape& tape = x.tape();
    const auto scope = tape.enter(path());
    const int64_t B = x.shape()[0];
    const int64_t T = x.shape()[1];
    Var n = reader_.normalised(x);
    Var written = dropout(checked_forward(sublayer, reader_.read(n)), dropout_, sublayer.path());  // [B, T, d]
    Var s = scale(sigmoid(linear(scale(n, reader_.share()), tape.parameter(inject_))), 2);
    stream.x = add(x, mul(reshape(s, {B, T, C_, 1}), reshape(written, {B, T, 1, x.shape()[3]})));
  }

 private:
  int64_t C_;
  BranchReader reader_;
  Parameter& inject_;  // [C, C d]
  double dropout_;
};

/// In: C copies of the embedding. Out: a read.
class GatedEnds final : public StreamEnds {
 public:
  GatedEnds(const ModelConfig& config, const Scope& scope)
      : StreamEnds(scope), C_(config.residual_streams), reader_(config, scope) {}

  Stream enter(Var x) const override { return {copies(x, C_), {}}; }

  Var leave(const Stream& stream) const override {
    const auto scope = stream.x.tape().enter(path());
    return reader_.read(reader_.normalised(stream.x));
  }

 private:
  int64_t C_;
  BranchReader reader_;
};

}  // namespace

std::unique_ptr<Residual> make_gated_residual(const ModelConfig& config, const Scope& scope) {
  return std::make_unique<GatedResidual>(config, scope);
}

std::unique_ptr<StreamEnds> make_gated_ends(const ModelConfig& config, const Scope& scope) {
  return std::make_unique<GatedEnds>(config, scope);
}

}  // namespace minillm
