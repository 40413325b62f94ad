// BatchNorm (Ioffe and Szegedy 2015) over the tokens of a micro-batch: what a language model should not have, and why
// is to be seen here. In training each channel is normalised over all tokens, so a token's output depends on the
// others; afterwards by running averages, which are another function.

#include "nn/norm.h"

#include <vector>

namespace minillm {

namespace {

constexpr double momentum = 0.1;  // of the running averages

/// In training y = (x - mean) / sqrt(var + eps) * gain + bias with mean and (biased) var over the R = B T rows of
/// x [B, T, d], channel by channel; else with their running averages, of which that of var is unbiased, as in PyTorch.
/// An update moves them by 0.1 towards the mean over its micro-batches.
class BatchNorm final : public Norm, private UpdateHook {
 public:
  BatchNorm(const Scope& scope, int64_t width, double eps)
      : Norm(scope),
        gain_(scope.declare("weight", {width}, Init::constant(1))),
        bias_(scope.declare("bias", {width}, Init::constant(0))),
        running_mean_(scope.declare_buffer("running_mean", {width}, 0)),
        running_var_(scope.declare_buffer("running_var", {width}, 1)),
        eps_(eps),
        seen_mean_(static_cast<size_t>(width), 0.0),
        seen_var_(static_cast<size_t>(width), 0.0) {
    scope.store().follow_updates(*this);
  }

  Var forward(Var x) const override {
    Tape& tape = x.tape();
    const auto scope = tape.enter(path());
    if (!tape.options().training) {
      Var rstd = pow(add_scalar(tape.constant(running_var_.value), eps_), -0.5);
      Var scaled = mul(sub(x, tape.constant(running_mean_.value)), rstd);
      return add(mul(scaled, tape.parameter(gain_)), tape.parameter(bias_));
    }
    const Normalized normalized = batchnorm(x, tape.parameter(gain_), tape.parameter(bias_), eps_);
    if (tape.options().record) {
      observe(normalized.mean, normalized.variance, x.shape().numel() / x.shape()[-1]);
    }
    return normalized.y;
  }

 private:
  void observe(const Tensor& mean_of_batch, const Tensor& variance, int64_t rows) const {
    const double unbiased = rows > 1 ? static_cast<double>(rows) / static_cast<double>(rows - 1) : 1;
    for (size_t j = 0; j < seen_mean_.size(); ++j) {
      seen_mean_[j] += mean_of_batch.at(static_cast<int64_t>(j));
      seen_var_[j] += unbiased * variance.at(static_cast<int64_t>(j));
    }
    ++seen_;
  }

  void after_update() override {
    move(running_mean_.value, seen_mean_);
    move(running_var_.value, seen_var_);
    seen_ = 0;
  }

  /// Moves averages towards the mean of what was seen, and forgets that.
  void move(const Tensor& running, std::vector<double>& seen) const {
    for (size_t j = 0; j < seen.size() && seen_ > 0; ++j) {
      const auto i = static_cast<int64_t>(j);
      running.set(i, (1 - momentum) * running.at(i) + momentum * seen[j] / static_cast<double>(seen_));
      seen[j] = 0;
    }
  }

  Parameter& gain_;
  Parameter& bias_;
  Parameter& running_mean_;
  Parameter& running_var_;
  double eps_;
  mutable std::vector<double> seen_mean_;  // sums over the micro-batches since the last update
  mutable std::vector<double> seen_var_;
  mutable int64_t seen_ = 0;
};

}  // namespace

std::unique_ptr<Norm> make_batchnorm(const Scope& scope, int64_t width, double eps) {
  return std::make_unique<BatchNorm>(scope, width, eps);
}

}  // namespace minillm
