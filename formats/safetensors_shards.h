#pragma once
// Weights of one model in several safetensors files, as Hugging Face writes large ones: an index names the file of each
// tensor, {"weight_map": {"model.norm.weight": "model-00002-of-00002.safetensors", ...}}.

#include "formats/weight_file.h"

#include <string>

namespace minillm {

/// Opens every file that `index_path` names, beside it. Throws an input Error: no such index, a name with a folder in
/// it, a file that is missing or no safetensors file, a tensor that is not where the index says or that it does not
/// list.
WeightFile open_safetensors_shards(const std::string& index_path);

}  // namespace minillm
