#pragma once
// Var: the handle of a node's value, what ops take and return.

#include "autograd/node.h"

namespace minillm {

/// A tape, a node id and the tape's epoch at creation. Cheap to copy. Using a Var after its tape was cleared throws.
class Var {
 public:
  Var() = default;
  Var(Tape* tape, NodeId id, uint32_t epoch) : tape_(tape), id_(id), epoch_(epoch) {}

  explicit operator bool() const { return tape_ != nullptr; }

  Tape& tape() const;
  Node& node() const;  ///< throws an Error when the tape was cleared since
  NodeId id() const { return id_; }

  const Tensor& value() const;  ///< throws an Error when its memory was released (Tape::release_unsaved)
  const Shape& shape() const { return node().value.shape; }
  DType dtype() const { return node().value.dtype; }

  /// The gradient after backward. Throws when there is none: the node needs no gradient, or is an intermediate value
  /// whose gradient was given back to the pool (TapeOptions::retain keeps them).
  const Tensor& grad() const;

  /// The value of a one-element tensor.
  double item() const;

 private:
  Tape* tape_ = nullptr;
  NodeId id_ = -1;
  uint32_t epoch_ = 0;
};

}  // namespace minillm
