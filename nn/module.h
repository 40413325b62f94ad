#pragma once
// Module: a part with parameters. A constructor lists the parts, `forward` draws the arrows.

#include "autograd/ops.h"
#include "autograd/parameter.h"

#include <string>
#include <string_view>

namespace minillm {

/// Where a module stands in the model's tree of names and where it declares its parameters:
/// `Scope layer = model / "layers.0"; layer.declare("input_layernorm.weight", {d}, Init::constant(1))`.
class Scope {
 public:
  Scope(ParameterStore& store, std::string path) : store_(&store), path_(std::move(path)) {}

  Scope operator/(std::string_view child) const { return {*store_, name(child)}; }
  std::string name(std::string_view child) const { return path_.empty() ? std::string(child) : path_ + "." + std::string(child); }

  const std::string& path() const { return path_; }
  ParameterStore& store() const { return *store_; }

 private:
  ParameterStore* store_;
  std::string path_;
};

/// Base of all parts. Modules refer to parameters in a ParameterStore that outlives them; they are neither copied nor moved.
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

}  // namespace minillm
