#pragma once
// Module: a part with parameters. A constructor lists the parts, `forward` draws the arrows.

#include "autograd/ops.h"
#include "autograd/parameter.h"

#include <string>
#include <string_view>
#include <utility>

namespace minillm {

/// Where a module stands in the model's tree of names, and where it declares its parameters:
/// `(model / "layers.0" / "input_layernorm").declare("weight", {d}, Init::constant(1))`.
class Scope {
 public:
  Scope(ParameterStore& store, std::string path) : store_(&store), path_(std::move(path)) {}

  Scope operator/(std::string_view child) const { return {*store_, name(child)}; }

  /// "model.layers.0" -> "model.layers.0.<child>"
  std::string name(std::string_view child) const {
    return path_.empty() ? std::string(child) : path_ + "." + std::string(child);
  }

  Parameter& declare(std::string_view child, const Shape& shape, Init init) const {
    return store_->declare(name(child), shape, init);
  }

  Parameter& declare_buffer(std::string_view child, const Shape& shape, double value) const {
    return store_->declare_buffer(name(child), shape, value);
  }

  const std::string& path() const { return path_; }
  ParameterStore& store() const { return *store_; }

 private:
  ParameterStore* store_;
  std::string path_;
};

/// Base of all parts. Modules refer to parameters in a ParameterStore that outlives them.
class Module {
 public:
  explicit Module(const Scope& scope) : path_(scope.path()) {}
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& path() const { return path_; }  ///< "model.layers.3.self_attn": the scope of its nodes

 private:
  std::string path_;
};

/// What stands in a residual branch: attention or a feed-forward network, [B, T, d] -> [B, T, d].
class Sublayer : public Module {
 public:
  using Module::Module;
  virtual Var forward(Var x) const = 0;
};

}  // namespace minillm
