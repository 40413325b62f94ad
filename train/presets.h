#pragma once
// Presets: the configs that come with the program, found by name.

#include <string>
#include <vector>

namespace minillm {

/// The file of "llama2-7b" in configs/presets or configs/presets/models, beside the program's sources or where it is
/// installed (share/minillm), or below the working folder; "" when there is none.
std::string find_preset(const std::string& name);

/// The names of all presets, in order.
std::vector<std::string> preset_names();

}  // namespace minillm
