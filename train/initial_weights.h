#pragma once
// `train --init`: the weights a new run starts from.

#include "data/token_file.h"
#include "nn/transformer.h"
#include "train/config_file.h"

#include <string>

namespace minillm {

/// Loads `init` into a model with memory: a safetensors file, a checkpoint, or the folder of a run (its newest valid
/// checkpoint); "" leaves the weights as they are. `loaded` is the model's config, `data` what it will be trained on.
/// Returns the file the weights came from with its SHA-256, or "". Throws an input Error that lists the names and
/// shapes that do not match and, for a run, the settings that differ; or names a weight that is not finite,
/// or not in the model's type.
std::string load_initial_weights(Transformer& model, const LoadedConfig& loaded, const TokenFile& data,
                                 const std::string& init);

}  // namespace minillm
