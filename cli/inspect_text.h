#pragma once
// What `minillm inspect` prints: tables of the layers and of their heads.

#include "generate/inspect.h"

#include <string>

namespace minillm::cli {

/// Tokens and loss, then the tables; "-" with a reason where a model has no such number. Ends with a newline.
std::string inspection_text(const Inspection& inspection);

}  // namespace minillm::cli
