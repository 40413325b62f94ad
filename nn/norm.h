#pragma once
// Normalisation layers: [.., width] -> [.., width].

#include "nn/model_config.h"
#include "nn/module.h"

#include <memory>
#include <span>
#include <string_view>

namespace minillm {

class Norm : public Module {
 public:
  using Module::Module;
  virtual Var forward(Var x) const = 0;
};

/// A row of the table of norms (config key model.norm).
struct NormKind {
  std::string_view name;
  std::unique_ptr<Norm> (*make)(const Scope& scope, int64_t width, double eps);
  double default_eps;
  double gain_offset;  ///< of the RMS norms that follow it on queries and keys: 1 where gains are stored as gain - 1
};

std::span<const NormKind> norm_kinds();

/// x itself, without parameters.
std::unique_ptr<Norm> make_no_norm(const Scope& scope);

/// The norm that `config.norm` names, with its parameters declared under `scope`.
std::unique_ptr<Norm> make_norm(const ModelConfig& config, const Scope& scope, int64_t width);

}  // namespace minillm
