#pragma once
// A gate on the heads of attention.

#include "nn/init.h"
#include "nn/linear.h"

#include <string_view>

namespace minillm {

/// What a word of model.attention_gate_activation or model.gdn_gate stands for: sigmoid, silu.
inline Activation gate_activation(std::string_view word) {
  return word == "silu" ? Activation::silu : Activation::sigmoid;
}

/// part * act(x W^T) with W = <scope>.gate_proj.weight, act the sigmoid or SiLU (Qiu et al. 2025, "Gated Attention for
/// Large Language Models"): a factor for each element of a head (elementwise), or one for the whole head (headwise).
class HeadGate final : public Module {
 public:
  HeadGate(const ModelConfig& config, const Scope& scope, int64_t heads, int64_t width)
      : Module(scope),
        heads_(heads),
        width_(width),
        factors_(config.attention_gate == "headwise" ? 1 : width),
        activation_(gate_activation(config.attention_gate_activation)),
        gate_(scope / "gate_proj", config.d_model, heads * factors_, matrix_init(), false) {}

  /// part [B, T, heads * width], x [B, T, d] -> [B, T, heads * width]
  Var forward(Var part, Var x) const {
    const int64_t B = x.shape()[0];
    const int64_t T = x.shape()[1];
    Var factors = reshape(activate(gate_.forward(x), activation_), {B, T, heads_, factors_});
    return reshape(mul(reshape(part, {B, T, heads_, width_}), factors), {B, T, heads_ * width_});
  }

 private:
  int64_t heads_;
  int64_t width_;
  int64_t factors_;  // of a head
  Activation activation_;
  Linear gate_;
};

}  // namespace minillm
