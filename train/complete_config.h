#pragma once
// What a config gets from its data and its model's parts, and the last check of all of it.

#include "data/token_file.h"
#include "train/config_file.h"

#include <string>
#include <vector>

namespace minillm {

/// Opens the config's data. Throws an input Error that names the key's place when there is none.
TokenFile open_data_of(const LoadedConfig& loaded);

/// Completes a config with what the data says (nullptr: no data) and what its parts derive, and checks all of it.
/// Throws an Error that lists every problem.
void complete_config(LoadedConfig& loaded, const TokenFile* data);

/// Completes a config to be looked at: no data is read unless the vocabulary is left to it.
LoadedConfig completed_without_data(LoadedConfig loaded);

/// Loads and completes a config to be looked at: no data is read unless the vocabulary is left to it.
LoadedConfig load_without_data(const std::string& path, const std::vector<std::string>& overrides);

}  // namespace minillm
