#include "nn/residual.h"

#include "nn/part_table.h"

namespace minillm {

namespace {

/// The connection of NormPosition's formulas. Without the addition ("none") `x +` is dropped and nothing else changes.
class PlainResidual final : public Residual {
 public:
  PlainResidual(const ModelConfig& config, const Scope& scope, bool adds)
      : Residual(scope),
        position_(get_part(norm_position_kinds(), "model.norm_position", config.norm_position).position),
        adds_(adds),
        dropout_(config.dropout) {}

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

constexpr NormPositionKind norm_positions[] = {
    {"pre", NormPosition::pre},
    {"post", NormPosition::post},
    {"sublayer_output", NormPosition::sublayer_output},
};

constexpr ResidualKind table[] = {
    {"plain", make_plain},
    {"none", make_none},
};

}  // namespace

std::span<const NormPositionKind> norm_position_kinds() {
  return norm_positions;
}

std::span<const ResidualKind> residual_kinds() {
  return table;
}

std::unique_ptr<Residual> make_residual(const ModelConfig& config, const Scope& scope) {
  return get_part(residual_kinds(), "model.residual", config.residual).make(config, scope);
}

}  // namespace minillm
