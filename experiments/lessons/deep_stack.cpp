#include "experiments/lessons/deep_stack.h"

#include "autograd/ops.h"
#include "experiments/lessons/values.h"
#include "nn/linear.h"

#include <memory>

namespace minillm {

namespace {

constexpr int64_t width = 64;
constexpr int64_t stack_rows = 8;
constexpr double eps = 1e-6;

Var layer(Var x, const Linear& weight, Around around, int64_t depth) {
  const auto F = [&](Var input) { return weight.forward(activate(input, Activation::relu)); };
  switch (around) {
    case Around::nothing: return F(x);
    case Around::residual: return add(x, F(x));
    case Around::scaled_residual: return add(x, scale(F(x), 1 / std::sqrt(static_cast<double>(depth))));
    case Around::pre_norm: return add(x, F(rmsnorm(x, eps)));
  }
  return x;
}

}  // namespace

std::vector<double> gradient_norms(Around around, double gain, int64_t depth) {
  ParameterStore store;
  const Init init = Init::normal(gain * std::sqrt(2.0 / width));
  std::vector<std::unique_ptr<Linear>> layers;
  for (int64_t l = 0; l < depth; ++l) {
    layers.push_back(std::make_unique<Linear>(Scope(store, fmt::format("layers.{}", l)), width, width, init, false));
  }
  store.allocate(DType::float64);
  store.initialize(1);

  const Buffer input = normal_values({stack_rows, width}, DType::float64, "input");
  const Buffer direction = normal_values({stack_rows, width}, DType::float64, "direction");
  Tape tape({.retain = true});
  std::vector<Var> states = {tape.variable(input.tensor())};
  for (const auto& weight : layers) {
    states.push_back(layer(states.back(), *weight, around, depth));
  }
  tape.backward(sum_all(mul(states.back(), tape.constant(direction.tensor()))));

  std::vector<double> norms;
  norms.reserve(states.size());
  const double last = norm_of(numbers_of(states.back().grad()));
  for (const Var& state : states) {
    norms.push_back(norm_of(numbers_of(state.grad())) / last);
  }
  return norms;
}

}  // namespace minillm
