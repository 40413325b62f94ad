#pragma once
// `train --init`: the weights a new run starts from.

#include "nn/transformer.h"
#include "train/config_file.h"

#include <string>

namespace minillm {

/// Loads `init`, a safetensors file or the folder of a run (its newest valid checkpoint), into a model with memory; ""
/// leaves the weights as they are. `loaded` is the model's config. Throws an input Error that lists the names and
/// shapes that do not match and, for a run, the settings that differ.
void load_initial_weights(Transformer& model, const LoadedConfig& loaded, const std::string& init);

}  // namespace minillm
