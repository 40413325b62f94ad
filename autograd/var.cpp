#include "autograd/var.h"

#include "autograd/tape.h"

namespace minillm {

Tape& Var::tape() const {
  check(tape_ != nullptr, "an empty Var was used as an operand");
  return *tape_;
}

Node& Var::node() const {
  Tape& owner = tape();
  check(epoch_ == owner.epoch(),
        "Var #{} was used after its tape was cleared (epoch {}, now {}): keep no Var across Tape::clear", id_, epoch_,
        owner.epoch());
  return owner.node(id_);
}

const Tensor& Var::value() const {
  const Node& here = node();
  check(static_cast<bool>(here.value), "#{} {} was released and read again (TapeOptions::retain keeps all values)", id_,
        here.op);
  return here.value;
}

const Tensor& Var::grad() const {
  const Node& here = node();
  check(has_gradient(here), "#{} {} has no gradient: {}", id_, here.op,
        here.needs_grad ? "backward has not reached it, or it was given back (TapeOptions::retain keeps it)"
                        : "nothing it was computed from needs one");
  return here.grad;
}

double Var::item() const {
  check(value().numel() == 1, "item() needs one element, #{} {} has shape {}", id_, node().op, shape());
  return value().at(0);
}

}  // namespace minillm
