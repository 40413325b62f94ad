#pragma once
// Where a value that is not finite was born: the first operation of a pass that made one from finite operands, or the
// weights or data that brought it in.

#include "autograd/tape.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace minillm {

/// Of a tensor's elements; least, largest and mean over the finite ones, NaN when there is none.
struct ElementStatistics {
  int64_t count = 0;
  int64_t not_finite = 0;
  double least = 0;
  double largest = 0;
  double mean = 0;
};
ElementStatistics element_statistics(const Tensor& tensor);

struct Birthplace {
  struct Operand {
    std::string name;  ///< "#12 rmsnorm model.layers.0.mlp", or a parameter's own
    Shape shape;
    ElementStatistics elements;
  };

  Pass pass = Pass::forward;
  NodeId node = -1;
  std::string op;
  std::string scope;      ///< "model.layers.0.mlp"; of a parameter its name
  std::string called_at;  ///< "nn/ffn.cpp:57"
  Shape shape;            ///< of the tensor with the value: the op's result, or the operand's gradient
  int64_t index = 0;      ///< of the first such element
  double value = 0;
  std::vector<Operand>
      operands;  ///< forward: what the op read; backward: the gradient of its result, then what it read
};

/// Of values, behind a forward pass of a tape that retains them. -infinity that a mask brings in is none. Nothing when
/// all that leads to a NaN or to `loss` is finite.
std::optional<Birthplace> value_birthplace(Tape& tape, Var loss);

/// Of gradients, behind backward: the last op of the tape whose result's gradient is finite and an operand's is not.
std::optional<Birthplace> gradient_birthplace(Tape& tape);

/// Some lines: what was born where, and the operands.
std::string birthplace_text(const Birthplace& birthplace);

}  // namespace minillm
