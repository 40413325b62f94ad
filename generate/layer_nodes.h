#pragma once
// The nodes of a forward pass that tell what each layer does. The pass composes its ops and retains their values.

#include "generate/layer_statistics.h"
#include "nn/transformer.h"

#include <cstdint>
#include <span>
#include <vector>

namespace minillm {

/// Of one layer; null: not there.
struct LayerNodes {
  const Node* scores = nullptr;         ///< of full attention [B, H, T, T], hidden ones far below all others
  const Node* probabilities = nullptr;  ///< what softmax makes of them
  const Node* router = nullptr;         ///< scores of the experts, for each token
  std::vector<const Node*> norms;       ///< the last node of each sublayer's: what it writes
  const Node* mixer_gate = nullptr;     ///< what attention or a linear layer is multiplied by
  std::vector<const Node*> hidden;      ///< what down_proj reads, of a mixture each expert's, the shared one's last
};

/// A layer each.
std::vector<LayerNodes> find_layer_nodes(Tape& tape, const ModelConfig& config);

/// layer_statistics of a pass whose nodes were found.
std::vector<LayerStatistics> statistics_of_pass(const Transformer& model, const Trace& trace,
                                                std::span<const LayerNodes> layers);

/// Mean weight on key 0 over the rows of queries 1 to T - 1: probabilities [.., T, T]. Of one token: NaN.
double first_token_share(std::span<const double> probabilities, int64_t T);

}  // namespace minillm
