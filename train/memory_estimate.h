#pragma once
// What training a model must keep in memory, by formula: what a run is refused by that cannot fit, what `minillm check`
// tells, and the yardstick of `minillm bench`.

#include "nn/transformer.h"
#include "train/train_config.h"

#include <cstdint>
#include <string>

namespace minillm {

/// Bytes. Of each token and layer backward needs the block's input, what the mixer adds to it, the mixer's rows (of
/// full attention q|k|v and the heads' output: MixerCost::saved_values) and the FFN's hidden values; norms and
/// activations can be made again from these. Parts that are composed of primitives keep more.
struct MemoryEstimate {
  int64_t state = 0;          ///< weights, gradients, two moments
  double position_table = 0;  ///< of rotary or sinusoidal positions
  double activations = 0;     ///< of all layers, for one micro-batch
  double composed = 0;        ///< what composed ops hold beside these: see composed_values
  double workspace = 0;       ///< gradients under way in one layer, and the logits that the loss holds at once

  double kept() const { return static_cast<double>(state) + position_table; }  ///< from step to step
  double held() const { return activations + composed; }  ///< when backward begins, beside what is kept
  double total() const { return kept() + held() + workspace; }
};

MemoryEstimate estimate_memory(const Transformer& model, const Config& config);

/// Throws an input Error when the machine has not the memory that training certainly takes: four values a parameter,
/// the table of positions, what backward needs of every layer (and what composed ops leave there), and `data_bytes`
/// beside them. Taking more than there is
/// ends in a kill, not in an error: Linux promises it all and takes the promise back.
void check_training_fits(const Transformer& model, const Config& config, double data_bytes = 0);

/// The same for weights that are used and not trained; `where`: the file they come from.
void check_weights_fit(const Transformer& model, DType dtype, const std::string& where);

/// The same for looking into one sequence of `tokens`, with every value of the composed ops kept, and with the
/// gradients of all of them where `with_gradients`. `where`: what made the sequence so long.
void check_look_fits(const Transformer& model, const Config& config, int64_t tokens, bool with_gradients,
                     const std::string& where);

/// The same for float32 weights that are imported: the largest tensor is read a second time, to be compared.
void check_import_fits(const Transformer& model, const std::string& where);

}  // namespace minillm
