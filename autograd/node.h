#pragma once
// Node: one operation on the tape. An op derives from it a small struct with named saved fields.

#include "core/tensor.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace minillm {

class Tape;
struct Parameter;

/// Index of a node on its tape: the order of creation, the same in every run.
using NodeId = int32_t;

/// The file and line an op was called from; every op takes one as its last, defaulted argument.
struct Here {
  const char* file;
  int line;

  // __builtin_FILE rather than std::source_location: clang 14 with libstdc++ 12 lacks the latter.
  Here(const char* call_file = __builtin_FILE(), int call_line = __builtin_LINE()) : file(call_file), line(call_line) {}
};

}  // namespace minillm

/// "nn/norm.cpp:20"
template <>
struct fmt::formatter<minillm::Here> : fmt::formatter<std::string_view> {
  fmt::format_context::iterator format(const minillm::Here& here, fmt::format_context& context) const {
    return fmt::format_to(context.out(), "{}:{}", here.file, here.line);
  }
};

namespace minillm {

/// A value with the way to its inputs' gradients. Nodes live in the tape's arena and are never destroyed one by one, so
/// a derived struct holds plain data only: Tensors, numbers, NodeIds.
struct Node {
  const char* op = "";     ///< a literal: "softmax"
  const char* scope = "";  ///< interned by the tape: "model.layers.3.self_attn"
  Here here;               ///< where the op was called
  NodeId id = -1;
  bool needs_grad = false;    ///< some input leads to a parameter or variable, and the tape records
  bool saved = false;         ///< some backward reads `value` (Tape::save)
  bool recomputable = false;  ///< forward() makes `value` again, cheaply beside what reads it
  bool released = false;      ///< the memory of `value` went back (Tape::release_unsaved)
  bool pinned = false;        ///< that must not happen: a leaf, or a value that a view shares
  std::span<NodeId> inputs;   ///< in the order of the op's arguments
  Tensor value;
  Tensor grad;                     ///< empty until the first accumulation
  Parameter* parameter = nullptr;  ///< set on a parameter's leaf: `grad` is then the parameter's own, or a row of it

  /// Adds this node's contribution to the gradient of each input that needs one. Called once, when `grad` is complete,
  /// and only when some input does: an op of one operand need not ask.
  /// The contract of every op: backward adds to what is there, because an input may have other readers; only where
  /// Tape::gradient_target says `fresh` does it overwrite.
  virtual void backward(Tape& tape) = 0;

  /// Fills `value` from the inputs' values. Only `recomputable` ops have it: backward then calls it once more.
  virtual void forward(Tape& tape);

  /// How far the nearest input value is from where the slope jumps (relu: from 0), infinity where it never does.
  /// Central differences are only right with room around them; for ops whose values are kept (TapeOptions::retain).
  virtual double distance_to_kink(Tape& tape) const;

 protected:
  Node() = default;
  Node(const Node&) = default;
  Node& operator=(const Node&) = default;
  ~Node() = default;  // not virtual: see above
};

/// Where a node belongs: its scope, "model.layers.0.mlp", or the name of the parameter whose leaf it is.
const char* scope_of(const Node& node);

/// Whether some backward has written the node's `grad`.
bool has_gradient(const Node& node);

}  // namespace minillm
