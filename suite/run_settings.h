#pragma once
// Which settings make two runs repeats of each other, and which make their steps the same work.

#include "train/config_keys.h"

#include <string>
#include <string_view>

namespace minillm {

/// Whether runs that differ in this key ("train.threads") still learn the same: their folders, what they keep, their
/// seed. The file of the data is one, since it may have been moved: data are told apart by their unigram loss.
bool is_repeat_setting(std::string_view key);

/// "model.norm="layernorm"", a line each, of the keys that `wanted` takes: equal texts, equal settings.
std::string settings_text(const Config& config, bool (*wanted)(const ConfigKey& key));

}  // namespace minillm
