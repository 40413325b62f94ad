#include "nn/linear.h"

namespace minillm {

namespace {

std::vector<NamedRows> named_rows(const Scope& scope, std::initializer_list<Linear::Rows> parts,
                                  std::string_view tensor, Init init) {
  std::vector<NamedRows> rows;
  for (const Linear::Rows& part : parts) {
    rows.push_back({(scope / part.name).name(tensor), part.out, init});
  }
  return rows;
}

}  // namespace

Linear::Linear(const Scope& scope, int64_t in, int64_t out, Init init, bool bias)
    : Module(scope), weight_(&scope.declare("weight", {out, in}, init)) {
  if (bias) {
    bias_ = &scope.declare("bias", {out}, Init::constant(0));
  }
}

Linear::Linear(const Scope& scope, std::string_view merged, std::initializer_list<Rows> parts, int64_t in, Init init,
               bool bias)
    : Module(scope / merged),
      weight_(&scope.store().declare_merged((scope / merged).name("weight"), named_rows(scope, parts, "weight", init),
                                            in)) {
  if (bias) {
    bias_ = &scope.store().declare_merged((scope / merged).name("bias"),
                                          named_rows(scope, parts, "bias", Init::constant(0)), 0);
  }
}

Var Linear::forward(Var x) const {
  Tape& tape = x.tape();
  const auto scope = tape.enter(path());
  return linear(x, tape.parameter(*weight_), bias_ != nullptr ? tape.parameter(*bias_) : Var());
}

}  // namespace minillm
