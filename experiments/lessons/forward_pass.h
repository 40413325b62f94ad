#pragma once
// Nodes of a model's forward pass that lessons look at. The tape must retain its values.

#include "autograd/tape.h"

#include <cstdint>
#include <vector>

namespace minillm {

/// Options of such a tape: nothing is trained, everything is kept.
inline constexpr TapeOptions to_look_at = {.record = false, .training = false, .retain = true};

/// The norms that stand on the residual stream, in the order in which data meets them: inputs[0] is what each reads.
std::vector<const Node*> stream_norms(Tape& tape);

/// Where sublayers write: each an addition of the stream so far (inputs[0]) and what a sublayer made (inputs[1]).
std::vector<const Node*> stream_writes(Tape& tape);

/// What a layer's down_proj reads [.., d_ff]: its units behind the activation. Throws an input Error when the layer has
/// no such network, or experts.
const Node& ffn_units(Tape& tape, int64_t layer);

}  // namespace minillm
