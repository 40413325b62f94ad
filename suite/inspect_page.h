#pragma once
// The page of an inspection: attention as heat maps, each layer's numbers as a table and as charts, in one file.

#include "generate/inspect.h"

#include <cstdint>
#include <string>
#include <vector>

namespace minillm {

/// What was inspected, for people.
struct InspectedText {
  std::string model = {};                ///< a run's folder or a model's file, as it was named
  std::string checkpoint = {};           ///< the file that the weights came from
  std::vector<int32_t> token_ids = {};   ///< [T], `<s>` first
  std::vector<std::string> tokens = {};  ///< their labels
  bool causal = true;                    ///< of the model: what a query sees
};

/// The object that `inspect --json` prints: the text, then what add_numbers adds.
JsonObject inspection_json(const InspectedText& text, const Inspection& inspection);

/// Throws an input Error where no page of an inspection can be written: another name than .html, a folder, or a file
/// that somebody else put there.
void check_inspection_page(const std::string& path);

/// Writes the page whole or not at all, its folder too; check_inspection_page comes first. Attention weights are shown
/// as far as `inspection` keeps them, rounded to steps of 1 / 4095.
void write_inspection_page(const std::string& path, const InspectedText& text, const Inspection& inspection);

}  // namespace minillm
