// The same values under another shape: the one op whose result shares storage with its operand.

#include "autograd/op_support.h"

namespace minillm {

namespace {

struct ReshapeNode final : Node {
  NodeId x;

  void backward(Tape& tape) override;
};

void ReshapeNode::backward(Tape& tape) {
  if (!tape.move_gradient(*this, x)) {
    add_to_gradient(tape, x, grad.reshape(tape.shape(x)));
  }
}

}  // namespace

Var reshape(Var x, const Shape& shape, Here here) {
  Tape& tape = x.tape();
  check_op(shape.numel() == x.shape().numel(), "reshape", tape, here,
           "the number of elements must stay; found {} ({} elements) to {} ({} elements)", x.shape(), x.shape().numel(),
           shape, shape.numel());
  auto& node = tape.make_view<ReshapeNode>("reshape", x, x.value().reshape(shape), here);
  node.x = x.id();
  return tape.var(node);
}

}  // namespace minillm
