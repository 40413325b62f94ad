#pragma once
// How a sublayer is joined to the residual stream: where its norm stands, and whether its input is added back.

#include "nn/model_config.h"
#include "nn/module.h"
#include "nn/norm.h"

#include <cstdint>
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

/// Where the norm of a sublayer stands.
enum class NormPosition : uint8_t {
  pre,              ///< x + F(N(x))      Xiong et al. 2020
  post,             ///< N(x + F(x))      Vaswani et al. 2017
  sublayer_output,  ///< x + N(F(x))      OLMo 2
};

/// A row of the table of norm positions (config key model.norm_position).
struct NormPositionKind {
  std::string_view name;
  NormPosition position;
};

std::span<const NormPositionKind> norm_position_kinds();

}  // namespace minillm
