// Our configs, and what is written of one that was read must be read again as the same.

#include "tests/fuzz/input_file.h"
#include "train/complete_config.h"
#include "train/config_file.h"

#include <string_view>

using namespace minillm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.find("base") != std::string_view::npos) {
    return 0;  // files of this machine are no input
  }
  return fuzz::read_or_refuse([&] {
    LoadedConfig loaded = parse_config(text, "config.toml");
    const LoadedConfig again = parse_config(to_toml(loaded.config, loaded.origins), "again.toml");
    if (!diff(loaded.config, again.config).empty()) {
      __builtin_trap();
    }
  });
}
