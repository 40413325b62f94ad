#pragma once
// A model of another tool: its config and its weights under our names. One row a format, told by a file's first bytes.

#include "formats/weight_file.h"
#include "nn/model_config.h"

#include <span>
#include <string>
#include <string_view>

namespace minillm {

struct ForeignModel {
  std::string format;   ///< "llm.c, GPT-2, version 3 (float32)"
  ModelConfig config;   ///< what the file fixes; the rest is to be derived
  WeightFile weights;   ///< every tensor of such a model, once
  std::string dropped;  ///< what the file has beyond that: "47 rows of padding"; "" = nothing
};

/// A row of the table of formats.
struct ForeignFormat {
  std::string_view name;                             ///< for messages: "a GPT-2 checkpoint of llm.c"
  bool (*recognises)(std::string_view first_bytes);  ///< at most UserBlock::size of them
  ForeignModel (*open)(const std::string& path);     ///< checks all but the values
};

std::span<const ForeignFormat> foreign_formats();

/// Opens a file by the row that recognises it. Throws an input Error when none does, with what the file seems to be.
ForeignModel open_foreign_model(const std::string& path);

}  // namespace minillm
