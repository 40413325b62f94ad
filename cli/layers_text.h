#pragma once
// What `minillm lint` and `minillm inspect` print of a model's layers.

#include "generate/layer_statistics.h"

#include <string>
#include <vector>

namespace minillm::cli {

/// Four digits; "-" for a value that is not there.
std::string number_text(double number);

/// The gates of the layers that have some, beside each other: a table behind an empty line; "" without any.
std::string gates_text(const std::vector<LayerStatistics>& layers);

}  // namespace minillm::cli
