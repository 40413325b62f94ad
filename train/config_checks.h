#pragma once
// What a config's values must fulfil together, once each by itself is right.

#include "train/config_keys.h"
#include "train/train_config.h"

#include <string>
#include <string_view>
#include <vector>

namespace minillm {

/// Derives run.name (`stem`, the config file's name, where it is not set), run.out and train.micro_batch_size. Returns
/// every problem, with its key ("optim.lr") as `where`: of one value, of two that do not go together, of a number that
/// train.dtype does not hold. The model's derived keys are left to complete_config.
std::vector<Problem> derive_and_compare(Config& config, const std::string& stem);

/// The keys whose values decide, together with `key`'s, whether `key` is right.
std::vector<std::string_view> compared_with(std::string_view key);

/// Puts the place before the key of a problem about a stored value: "configs/tiny.toml:12: model.n_heads". When the key
/// has its default, the place is that of a key it is compared with, if that one was set.
Problem located(Problem problem, const Config& config, const ConfigOrigins& origins);

/// What the settings allow but a user may not have meant (lr = 0), one sentence each.
std::vector<std::string> config_notices(const Config& config);

}  // namespace minillm
