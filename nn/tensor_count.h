#pragma once
// Where a model's parameters are, told from names and shapes alone: of a config's model before it takes memory, or of
// the header of a file of weights.

#include "core/shape.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

struct CountedTensor {
  std::string name;
  Shape shape;
  bool is_buffer = false;  ///< stored with the weights and never trained: causal masks, running statistics
};

/// A kind of part: a row of the table of groups, in the order of the data flow.
struct GroupKind {
  std::string_view name;         ///< embed_tokens, full_attention, ffn, norms, ...
  bool in_text_model = true;     ///< all but mtp and vision
  int64_t classic_squares = 0;   ///< its part of the classic estimate's 12 L d^2: of a layer, in units of d^2
  std::string_view beside = {};  ///< what stands beside its layers: "final", "at both ends"
};

std::span<const GroupKind> group_kinds();

/// The kind that a tensor belongs to, told by its name.
const GroupKind& group_of(std::string_view tensor);

/// The layer that a tensor's or scope's name tells, its first component that is a number: 3 of "model.layers.3.mlp" and
/// of "h.3.attn"; -1: none.
int64_t layer_of(std::string_view name);

/// One line: a kind of part, counted. Buffers are no part of it.
struct TensorGroup {
  const GroupKind* kind = nullptr;
  int64_t parameters = 0;  ///< per_unit * units + beside
  int64_t per_unit = 0;    ///< the first layer's count
  int64_t units = 0;       ///< layers that have it, or 1
  int64_t beside = 0;      ///< the rest: the final norm, the ends of the residual stream, what layers differ by
  double share = 0;        ///< parameters / all parameters
  double text_share = 0;   ///< parameters / the text model's; 0: it is no part of it
  std::string derivation;  ///< per unit, from the shapes: "4*256*256", "2*256*688 + 688*256"

  std::string_view name() const { return kind->name; }
};

/// A part of what the classic estimate leaves out: "full_attention beyond 4 d^2 a layer".
struct GapItem {
  std::string what;
  int64_t parameters = 0;  ///< may be negative
};

struct TensorCount {
  std::vector<TensorGroup> groups;  ///< in the order of the data flow; empty groups are left out
  int64_t tensors = 0;              ///< buffers included
  int64_t parameters = 0;           ///< all of them; tied weights once
  int64_t text_parameters = 0;      ///< without prediction modules and vision tower
  int64_t buffers = 0;              ///< elements
  int64_t classic_estimate = 0;  ///< 12 L d^2 + V d: four d x d projections, a 4d two-matrix FFN, one table; 0: unknown
  std::vector<GapItem> gap_items;  ///< add up to gap()

  int64_t file_elements() const { return parameters + buffers; }
  int64_t gap() const { return parameters - classic_estimate; }
  const TensorGroup* find(std::string_view group) const;  ///< nullptr: there is no such part
};

/// The denominators of shares.
inline constexpr std::string_view of_all = "all parameters";
inline constexpr std::string_view of_text = "the text model's parameters";

/// Names may be ours, which are Hugging Face's for Llama, or those of GPT-2's and Mixtral's files.
TensorCount count_tensors(std::span<const CountedTensor> tensors);

}  // namespace minillm
