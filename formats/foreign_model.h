#pragma once
// A model of another tool: its config and its weights under our names. One row a format, told by a file's first bytes.

#include "formats/weight_file.h"
#include "nn/model_config.h"

#include <string>

namespace minillm {

struct ForeignModel {
  std::string format;               ///< "llm.c, GPT-2, version 3 (float32)"
  ModelConfig config;               ///< what the file fixes; the rest is to be derived
  WeightFile weights;               ///< every tensor of such a model, once
  std::string dropped;              ///< what the file has beyond that: "47 rows of padding"; "" = nothing
  std::string tokenizer = {};       ///< a SentencePiece model; "" = none that can be used here
  std::string tokenizer_file = {};  ///< where it stands as such a model, for other commands; "" = it was made here
};

/// folder/name
std::string file_in(const std::string& folder, std::string_view name);

/// Whether open_foreign_model would take `path` for some format's, right or damaged: what is ours, or is not there, is
/// not.
bool is_foreign_model(const std::string& path);

/// Opens a file, or a folder by what is in it, by the row that recognises it. Throws an input Error when none does,
/// with what the file seems to be.
ForeignModel open_foreign_model(const std::string& path);

}  // namespace minillm
