#pragma once
// How a sublayer is joined to the residual stream: where its norm stands, and whether its input is added back.

#include "nn/model_config.h"
#include "nn/module.h"
#include "nn/norm.h"

#include <memory>
#include <span>
#include <string_view>

namespace minillm {

/// One residual connection around a sublayer F with its norm N. x [B, T, d] -> [B, T, d].
class Residual : public Module {
 public:
  using Module::Module;
  virtual Var forward(Var x, const Norm& norm, const Sublayer& sublayer) const = 0;
};

/// A row of the table of residual connections (config key model.residual).
struct ResidualKind {
  std::string_view name;
  std::unique_ptr<Residual> (*make)(const ModelConfig& config, const Scope& scope);
};

std::span<const ResidualKind> residual_kinds();

/// The connection that `config.residual` names, with parameters (if it has any) under `scope`.
std::unique_ptr<Residual> make_residual(const ModelConfig& config, const Scope& scope);

/// The words of model.norm_position.
inline constexpr std::string_view norm_positions[] = {"pre", "post", "sublayer_output"};

}  // namespace minillm
