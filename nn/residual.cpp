#include "nn/residual.h"

#include "nn/part_table.h"

namespace minillm {

namespace {

enum class NormPosition { pre, post, sublayer_output };

NormPosition position_of(const ModelConfig& config) {
  if (config.norm_position == "pre") {
    return NormPosition::pre;
  }
  return config.norm_position == "post" ? NormPosition::post : NormPosition::sublayer_output;
}

/// pre              x + F(N(x))      (Xiong et al. 2020)
/// post             N(x + F(x))      (Vaswani et al. 2017)
/// sublayer_output  x + N(F(x))      (OLMo 2)
/// Without the addition ("none") `x +` is dropped and nothing else changes.
class PlainResidual final : public Residual {
 public:
  PlainResidual(const ModelConfig& config, const Scope& scope, bool adds)
      : Residual(scope), position_(position_of(config)), adds_(adds), dropout_(config.dropout) {}

  Var forward(Var x, const Norm& norm, const Sublayer& sublayer) const override {
    switch (position_) {
      case NormPosition::pre: return join(x, run(sublayer, norm.forward(x)));
      case NormPosition::post: return norm.forward(join(x, run(sublayer, x)));
      case NormPosition::sublayer_output: return join(x, norm.forward(run(sublayer, x)));
    }
    fail_input({.what = "unknown norm position"});
  }

 private:
  Var run(const Sublayer& sublayer, Var x) const { return dropout(sublayer.forward(x), dropout_, sublayer.path()); }

  Var join(Var x, Var write) const {
    const auto scope = x.tape().enter(path());
    return adds_ ? add(x, write) : write;
  }

  NormPosition position_;
  bool adds_;
  double dropout_;
};

std::unique_ptr<Residual> make_plain(const ModelConfig& config, const Scope& scope) {
  return std::make_unique<PlainResidual>(config, scope, true);
}

std::unique_ptr<Residual> make_none(const ModelConfig& config, const Scope& scope) {
  return std::make_unique<PlainResidual>(config, scope, false);
}

constexpr ResidualKind table[] = {
    {"plain", make_plain},
    {"none", make_none},
};

}  // namespace

std::span<const ResidualKind> residual_kinds() {
  return table;
}

std::unique_ptr<Residual> make_residual(const ModelConfig& config, const Scope& scope) {
  return get_part(residual_kinds(), "model.residual", config.residual).make(config, scope);
}

}  // namespace minillm
