#include "nn/ffn.h"

#include "nn/init.h"
#include "nn/linear.h"
#include "nn/part_table.h"

namespace minillm {

namespace {

/// a(x W_gate, x W_up) W_down; with a(g, u) = act(g) u Shazeer 2020, "GLU Variants Improve Transformer".
class GatedFfn final : public Sublayer {
 public:
  GatedFfn(const GatedUnit& unit, const ModelConfig& config, const Scope& scope)
      : Sublayer(scope),
        gate_up_(scope, "gate_up_proj", {{"gate_proj", config.d_ff}, {"up_proj", config.d_ff}}, config.d_model,
                 matrix_init(), config.bias),
        down_(scope / "down_proj", config.d_ff, config.d_model, residual_out_init(config), config.bias),
        unit_(unit) {}

  Var forward(Var x) const override {
    const auto scope = x.tape().enter(path());
    Var gate_up = gate_up_.forward(x);   // [B, T, 2 d_ff]
    Var hidden = gated(gate_up, unit_);  // [B, T, d_ff]
    return down_.forward(hidden);        // [B, T, d]
  }

 private:
  Linear gate_up_;
  Linear down_;
  GatedUnit unit_;
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

std::unique_ptr<Sublayer> make_gated(const FfnKind&, const ModelConfig& config, const Scope& scope) {
  return std::make_unique<GatedFfn>(gated_unit(config), config, scope);
}

std::unique_ptr<Sublayer> make_plain(const FfnKind& kind, const ModelConfig& config, const Scope& scope) {
  return std::make_unique<PlainFfn>(kind, config, scope);
}

GatedUnit activation_unit(const FfnKind& kind, const ModelConfig&) {
  return kind.activation;
}

GatedUnit clamp_unit(const FfnKind&, const ModelConfig& config) {
  return BoundedGlu{.kind = BoundedGlu::Kind::clamp, .limit = config.ffn_limit};
}

GatedUnit oai_unit(const FfnKind&, const ModelConfig& config) {
  return BoundedGlu{.kind = BoundedGlu::Kind::oai, .limit = config.ffn_limit, .alpha = config.ffn_alpha};
}

GatedUnit situ_unit(const FfnKind&, const ModelConfig& config) {
  return BoundedGlu{
      .kind = BoundedGlu::Kind::situ, .gate_bound = config.ffn_gate_bound, .up_bound = config.ffn_up_bound};
}

}  // namespace

// In a file of its own: nn/moe.cpp.
std::unique_ptr<Sublayer> make_moe(const FfnKind& kind, const ModelConfig& config, const Scope& scope);
int64_t moe_active_width(const ModelConfig& config);

namespace {

constexpr FfnKind ffn_table[] = {
    {.name = "swiglu", .make = make_gated, .matrices = 3, .activation = Activation::silu, .unit = activation_unit},
    {.name = "geglu", .make = make_gated, .matrices = 3, .activation = Activation::gelu, .unit = activation_unit},
    {.name = "reglu", .make = make_gated, .matrices = 3, .activation = Activation::relu, .unit = activation_unit},
    {.name = "glu", .make = make_gated, .matrices = 3, .activation = Activation::sigmoid, .unit = activation_unit},
    {.name = "bilinear",
     .make = make_gated,
     .matrices = 3,
     .activation = Activation::identity,
     .unit = activation_unit},
    {.name = "gelu", .make = make_plain, .matrices = 2, .activation = Activation::gelu},
    {.name = "gelu_tanh", .make = make_plain, .matrices = 2, .activation = Activation::gelu_tanh},
    {.name = "relu", .make = make_plain, .matrices = 2, .activation = Activation::relu},
    {.name = "silu", .make = make_plain, .matrices = 2, .activation = Activation::silu},
    {.name = "swiglu_clamp", .make = make_gated, .matrices = 3, .unit = clamp_unit, .default_limit = 10},
    {.name = "swiglu_oai", .make = make_gated, .matrices = 3, .unit = oai_unit, .default_limit = 7},
    {.name = "situ_glu", .make = make_gated, .matrices = 3, .unit = situ_unit},
    {.name = "moe", .make = make_moe, .matrices = 3, .active_width = moe_active_width},
    {.name = "none", .make = nullptr, .matrices = 0},
};

}  // namespace

std::span<const FfnKind> ffn_kinds() {
  return ffn_table;
}

Var gated(Var gate_up, const GatedUnit& unit) {
  return std::visit([&](const auto& formula) { return gated_activation(gate_up, formula); }, unit);
}

const FfnKind* unit_kind(const ModelConfig& config) {
  const FfnKind* kind = find_part(ffn_kinds(), config.ffn == "moe" ? config.moe_unit : config.ffn);
  return kind == nullptr || kind->unit == nullptr ? nullptr : kind;
}

GatedUnit gated_unit(const ModelConfig& config) {
  const FfnKind* kind = unit_kind(config);
  return kind->unit(*kind, config);
}

int64_t gated_width(int64_t d, int64_t step) {
  return (8 * d + 3 * step - 1) / (3 * step) * step;
}

int64_t active_ffn_width(const ModelConfig& config) {
  const FfnKind& kind = get_part(ffn_kinds(), "model.ffn", config.ffn);
  if (kind.make == nullptr) {
    return 0;
  }
  return kind.active_width != nullptr ? kind.active_width(config) : config.d_ff;
}

std::unique_ptr<Sublayer> make_ffn(const ModelConfig& config, const Scope& scope) {
  const FfnKind& kind = get_part(ffn_kinds(), "model.ffn", config.ffn);
  return kind.make == nullptr ? nullptr : kind.make(kind, config, scope);
}

}  // namespace minillm
