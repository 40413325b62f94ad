#include "suite/run_settings.h"

#include <algorithm>
#include <array>

namespace minillm {

bool is_repeat_setting(std::string_view key) {
  constexpr std::array<std::string_view, 7> keys = {
      "data.path",          "train.seed",       "train.threads", "train.checkpoint_every", "train.keep_checkpoints",
      "train.sample_every", "train.max_minutes"};
  return key.starts_with("run.") || std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::string settings_text(const Config& config, bool (*wanted)(const ConfigKey& key)) {
  std::string text;
  for (const ConfigKey& key : config_keys()) {
    if (wanted(key)) {
      text += key.path() + "=" + toml_text(key, config) + "\n";
    }
  }
  return text;
}

}  // namespace minillm
