#include "nn/ffn.h"

#include "nn/init.h"
#include "nn/linear.h"
#include "nn/part_table.h"

namespace minillm {

namespace {

/// (act(x W_gate) * (x W_up)) W_down (Shazeer 2020, "GLU Variants Improve Transformer").
class GatedFfn final : public Sublayer {
 public:
  GatedFfn(const FfnKind& kind, const ModelConfig& config, const Scope& scope)
      : Sublayer(scope),
        gate_up_(scope, "gate_up_proj", {{"gate_proj", config.d_ff}, {"up_proj", config.d_ff}}, config.d_model,
                 matrix_init(), config.bias),
        down_(scope / "down_proj", config.d_ff, config.d_model, residual_out_init(config), config.bias),
        activation_(kind.activation) {}

  Var forward(Var x) const override {
    const auto scope = x.tape().enter(path());
    Var gate_up = gate_up_.forward(x);                    // [B, T, 2 d_ff]
    Var hidden = gated_activation(gate_up, activation_);  // [B, T, d_ff]
    return down_.forward(hidden);                         // [B, T, d]
  }

 private:
  Linear gate_up_;
  Linear down_;
  Activation activation_;
};

/// act(x W_up) W_down (Vaswani et al. 2017, eq. 2).
class PlainFfn final : public Sublayer {
 public:
  PlainFfn(const FfnKind& kind, const ModelConfig& config, const Scope& scope)
      : Sublayer(scope),
        up_(scope / "up_proj", config.d_model, config.d_ff, matrix_init(), config.bias),
        down_(scope / "down_proj", config.d_ff, config.d_model, residual_out_init(config), config.bias),
        activation_(kind.activation) {}

  Var forward(Var x) const override {
    const auto scope = x.tape().enter(path());
    Var hidden = activate(up_.forward(x), activation_);  // [B, T, d_ff]
    return down_.forward(hidden);                        // [B, T, d]
  }

 private:
  Linear up_;
  Linear down_;
  Activation activation_;
};

template <class Ffn>
std::unique_ptr<Sublayer> make(const FfnKind& kind, const ModelConfig& config, const Scope& scope) {
  return std::make_unique<Ffn>(kind, config, scope);
}

constexpr FfnKind table[] = {
    {"swiglu", make<GatedFfn>, Activation::silu, 3},         {"geglu", make<GatedFfn>, Activation::gelu, 3},
    {"reglu", make<GatedFfn>, Activation::relu, 3},          {"gelu", make<PlainFfn>, Activation::gelu, 2},
    {"gelu_tanh", make<PlainFfn>, Activation::gelu_tanh, 2}, {"relu", make<PlainFfn>, Activation::relu, 2},
    {"silu", make<PlainFfn>, Activation::silu, 2},           {"none", nullptr, Activation::relu, 0},
};

}  // namespace

std::span<const FfnKind> ffn_kinds() {
  return table;
}

std::unique_ptr<Sublayer> make_ffn(const ModelConfig& config, const Scope& scope) {
  const FfnKind& kind = get_part(ffn_kinds(), "model.ffn", config.ffn);
  return kind.make == nullptr ? nullptr : kind.make(kind, config, scope);
}

}  // namespace minillm
