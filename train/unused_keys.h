#pragma once
// Settings without effect: a config may carry them from one variant to the next, so they are told and never refused.

#include "train/config_keys.h"

#include <string>
#include <vector>

namespace minillm {

/// The keys that were set (those with an origin) and that the other choices leave without effect, a sentence each:
/// "a.toml:3: model.rope_theta is not used: model.position is "learned"".
std::vector<std::string> unused_keys(const Config& config, const ConfigOrigins& origins);

}  // namespace minillm
