// cross_entropy(linear(hidden, weight), targets) without the logits in memory.

#include "core/kernels/linear_cross_entropy.h"

#include "autograd/op_support.h"
#include "autograd/targets.h"

namespace minillm {

namespace {

struct LinearCrossEntropyNode final : Node {
  NodeId hidden;
  NodeId weight;
  Tensor dhidden_unit;  // [R, d], the gradient for an upstream gradient of 1; empty when hidden needs none
  Tensor dweight_unit;  // [V, d], likewise

  void backward(Tape& tape) override;
};

Var linear_cross_entropy_fused(Var hidden, Var weight, std::span<const int32_t> targets, Here here) {
  Tape& tape = hidden.tape();
  const int64_t R = hidden.shape()[0];
  const int64_t d = hidden.shape()[1];
  const int64_t V = weight.shape()[0];
  auto& node = tape.make<LinearCrossEntropyNode>("linear_cross_entropy", {hidden, weight}, {}, DType::float64, here);
  node.hidden = hidden.id();
  node.weight = weight.id();
  if (hidden.node().needs_grad) {
    node.dhidden_unit = tape.allocate(hidden.shape(), DType::float32);
  }
  if (weight.node().needs_grad) {
    node.dweight_unit = tape.allocate(weight.shape(), DType::float32);
  }
  const Tape::Scratch logits = tape.scratch({kernels::linear_cross_entropy_scratch(R, V)}, DType::float32);
  const Tape::Scratch row_loss = tape.scratch({R}, DType::float64);
  const Tensor saved_targets = save_targets(tape, targets);
  const int64_t counted = count_targets(targets);
  float* dhidden = node.dhidden_unit ? node.dhidden_unit.as<float>() : nullptr;
  float* dweight = node.dweight_unit ? node.dweight_unit.as<float>() : nullptr;
  const double loss = kernels::linear_cross_entropy_forward(
      hidden.value().as<float>(), weight.value().as<float>(), saved_targets.as<int32_t>(), dhidden, dweight,
      logits.tensor().as<float>(), row_loss.tensor().as<double>(), R, d, V, counted);
  *node.value.as<double>() = mean_over(loss, counted);
  return tape.var(node);
}

void add_scaled_to(Tape& tape, NodeId id, const Tensor& unit, double factor) {
  if (!unit) {
    return;
  }
  const GradientTarget target = tape.gradient_target(id);
  kernels::put_scaled(unit.as<float>(), target.tensor.as<float>(), static_cast<float>(factor), unit.numel(),
                      target.fresh);
}

// The loss is a scalar, so forward knew the gradients up to the factor dloss: dhidden = dloss * dhidden_unit, and the
// same for weight.
void LinearCrossEntropyNode::backward(Tape& tape) {
  const double dloss = *grad.as<double>();
  add_scaled_to(tape, hidden, dhidden_unit, dloss);
  add_scaled_to(tape, weight, dweight_unit, dloss);
}

}  // namespace

Var linear_cross_entropy(Var hidden, Var weight, std::span<const int32_t> targets, Here here) {
  Tape& tape = hidden.tape();
  check_op(hidden.shape().rank() == 2 && weight.shape().rank() == 2 && hidden.shape()[1] == weight.shape()[1] &&
               weight.shape()[0] >= 1,
           "linear_cross_entropy", tape, here, "hidden must be [R, d] and weight [V, d]; found hidden {}, weight {}",
           hidden.shape(), weight.shape());
  check_op(hidden.dtype() == weight.dtype(), "linear_cross_entropy", tape, here,
           "operands must share a dtype; found hidden {}, weight {}", hidden.dtype(), weight.dtype());
  check_targets("linear_cross_entropy", tape, targets, hidden.shape()[0], weight.shape()[0], here);
  if (tape.composed() || !tape.fast() || hidden.dtype() == DType::float64) {
    return cross_entropy(linear(hidden, weight, {}, here), targets, here);
  }
  return linear_cross_entropy_fused(hidden, weight, targets, here);
}

}  // namespace minillm
