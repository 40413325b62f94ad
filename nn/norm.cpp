#include "nn/norm.h"

#include "nn/part_table.h"

#include <cmath>

namespace minillm {

namespace {

/// x / rms(x) * gain. With `offset` 1 the stored gain is gain - 1 and starts at 0, so that weight decay pulls the gain
/// to 1 instead of 0 (zero-centered RMSNorm, as in Qwen3-Next).
class RmsNorm final : public Norm {
 public:
  RmsNorm(const Scope& scope, int64_t width, double eps, double offset)
      : Norm(scope), gain_(scope.declare("weight", {width}, Init::constant(1 - offset))), eps_(eps), offset_(offset) {}

  Var forward(Var x) const override {
    const auto scope = x.tape().enter(path());
    return rmsnorm(x, x.tape().parameter(gain_), eps_, offset_);
  }

 private:
  Parameter& gain_;
  double eps_;
  double offset_;
};

/// (x - mean) / sqrt(var + eps) * gain + bias (Ba et al. 2016).
class LayerNorm final : public Norm {
 public:
  LayerNorm(const Scope& scope, int64_t width, double eps)
      : Norm(scope),
        gain_(scope.declare("weight", {width}, Init::constant(1))),
        bias_(scope.declare("bias", {width}, Init::constant(0))),
        eps_(eps) {}

  Var forward(Var x) const override {
    Tape& tape = x.tape();
    const auto scope = tape.enter(path());
    return layernorm(x, tape.parameter(gain_), tape.parameter(bias_), eps_);
  }

 private:
  Parameter& gain_;
  Parameter& bias_;
  double eps_;
};

/// x / |x| * g with one scalar g for the whole width, which starts at sqrt(width) (Nguyen and Salazar 2019,
/// "Transformers without Tears"). The same as RMSNorm with every gain g / sqrt(width), and computed so; eps stands
/// under the root.
class ScaleNorm final : public Norm {
 public:
  ScaleNorm(const Scope& scope, int64_t width, double eps)
      : Norm(scope),
        gain_(scope.declare("weight", {1}, Init::constant(std::sqrt(static_cast<double>(width))))),
        width_(width),
        eps_(eps) {}

  Var forward(Var x) const override {
    Tape& tape = x.tape();
    const auto scope = tape.enter(path());
    Var shares = tape.filled({width_}, 1 / std::sqrt(static_cast<double>(width_)), x.dtype());
    return rmsnorm(x, mul(tape.parameter(gain_), shares), eps_);
  }

 private:
  Parameter& gain_;
  int64_t width_;
  double eps_;
};

/// x itself.
class NoNorm final : public Norm {
 public:
  using Norm::Norm;
  Var forward(Var x) const override { return x; }
};

std::unique_ptr<Norm> make_scalenorm(const Scope& scope, int64_t width, double eps) {
  return std::make_unique<ScaleNorm>(scope, width, eps);
}

std::unique_ptr<Norm> make_none(const Scope& scope, int64_t, double) {
  return std::make_unique<NoNorm>(scope);
}

std::unique_ptr<Norm> make_rmsnorm(const Scope& scope, int64_t width, double eps) {
  return std::make_unique<RmsNorm>(scope, width, eps, 0);
}

std::unique_ptr<Norm> make_zero_centered_rmsnorm(const Scope& scope, int64_t width, double eps) {
  return std::make_unique<RmsNorm>(scope, width, eps, 1);
}

std::unique_ptr<Norm> make_layernorm(const Scope& scope, int64_t width, double eps) {
  return std::make_unique<LayerNorm>(scope, width, eps);
}

}  // namespace

// In a file of its own: nn/batchnorm.cpp.
std::unique_ptr<Norm> make_batchnorm(const Scope& scope, int64_t width, double eps);

namespace {

constexpr NormKind norm_table[] = {
    {"rmsnorm", make_rmsnorm, 1e-6, 0},
    {"layernorm", make_layernorm, 1e-5, 0},
    {"zero_centered_rmsnorm", make_zero_centered_rmsnorm, 1e-6, 1},
    {"scalenorm", make_scalenorm, 1e-6, 0},
    {"batchnorm", make_batchnorm, 1e-6, 0},
    {"none", make_none, 1e-6, 0},
};

}  // namespace

std::span<const NormKind> norm_kinds() {
  return norm_table;
}

std::unique_ptr<Norm> make_no_norm(const Scope& scope) {
  return std::make_unique<NoNorm>(scope);
}

std::unique_ptr<Norm> make_norm(const ModelConfig& config, const Scope& scope, int64_t width) {
  return get_part(norm_kinds(), "model.norm", config.norm).make(scope, width, config.norm_eps);
}

}  // namespace minillm
