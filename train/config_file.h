#pragma once
// Configs: TOML files, a base below them, overrides above them, into the owners' structs. Precedence, lowest first:
// defaults, base, file, overrides.

#include "train/config_keys.h"
#include "train/train_config.h"

#include <string>
#include <string_view>
#include <vector>

namespace minillm {

struct LoadedConfig {
  Config config;
  ConfigOrigins origins;
  std::vector<std::string> files = {};  ///< what was read: the config and the bases it names
};

/// Reads `path`, with the files it names by `base = "other.toml"` (relative to the file that names it) below it and
/// `overrides` ("optim.lr=3e-4", "train.dtype=float64", "run.name='a b'") above it. Derives run.name (the file's stem),
/// run.out ("runs/<name>") and train.micro_batch_size where absent; the model's derived keys are nn's (`derive`).
/// Throws one Error that lists every problem, one a line, each with file:line (or the override), what was found, what
/// was expected and the nearest known key. What depends on the data (the vocabulary) is left to complete_config.
LoadedConfig load_config(const std::string& path, const std::vector<std::string>& overrides = {});

/// The same for text that is in memory: the config inside a checkpoint. `source` stands for the path in messages.
LoadedConfig parse_config(std::string_view text, const std::string& source,
                          const std::vector<std::string>& overrides = {});

/// `config` with `overrides` above it, each checked by itself: nothing is derived, nothing compared with other keys.
Config with_overrides(const Config& config, const std::vector<std::string>& overrides);

/// The resolved config as TOML, every key with its origin in a comment. A key that is not derived yet is a comment too.
/// Reading it back gives the same Config.
std::string to_toml(const Config& config, const ConfigOrigins& origins);

/// A key's origin for people: "configs/tiny.toml:12", "command line", "default" or "derived".
std::string origin_of(const ConfigKey& key, const Config& config, const ConfigOrigins& origins);

struct ConfigChange {
  std::string key;     ///< "optim.lr"
  std::string before;  ///< as TOML; "" = not derived
  std::string after;
};

/// The keys whose values differ, in the table's order: what a resume prints.
std::vector<ConfigChange> diff(const Config& before, const Config& after);

}  // namespace minillm
