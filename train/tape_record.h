#pragma once
// A step's tape, kept to look at: what each node read and made, how long it took, what it holds.

#include "autograd/node_clock.h"
#include "data/loader.h"
#include "nn/transformer.h"
#include "train/train_config.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace minillm {

struct NodeRecord {
  NodeId id = -1;
  std::string op;
  std::string scope;      ///< "model.layers.0.mlp"; of a parameter its name
  std::string called_at;  ///< "nn/ffn.cpp:57"
  std::vector<NodeId> operands;
  Shape shape;
  double value_length = 0;                ///< sqrt(sum of squares)
  std::optional<double> gradient_length;  ///< nothing: no gradient came here
  int64_t bytes = 0;  ///< of its value, while backward has not begun: 0 for a view, a parameter, and a value whose
                      ///< memory went back (Tape::release_unsaved)
  NodeClock::Seconds seconds;

  bool is_leaf() const { return operands.empty(); }
  bool is_parameter() const { return op == "parameter"; }
};

struct TapeRecord {
  int64_t step = 0;       ///< updates done before
  int64_t sequences = 0;  ///< of the micro-batch, B
  int64_t seq_len = 0;    ///< T
  std::string model;      ///< run.name
  std::vector<NodeRecord> nodes;

  NodeClock::Seconds seconds() const;  ///< of all nodes
  int64_t bytes() const;
};

/// The first micro-batch of step `step`, on a copy of the weights: nothing that trains is touched. Lengths come from a
/// pass that keeps every value; times and bytes from passes with the config's own kernels and ops, the last of three.
TapeRecord record_step(const Config& config, const Transformer& model, const Loader& data, int64_t step);

}  // namespace minillm
