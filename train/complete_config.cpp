#include "train/complete_config.h"

#include "train/config_checks.h"

#include <filesystem>

namespace minillm {

TokenFile open_data_of(const LoadedConfig& loaded) {
  const std::string& path = loaded.config.data.path;
  std::error_code error;
  const bool is_missing = path != "synthetic" && !path.empty() && !std::filesystem::exists(path, error);
  if (path.empty() || is_missing) {
    const auto origin = loaded.origins.find("data.path");
    fail_input({.where = origin == loaded.origins.end() ? "data.path" : origin->second + ": data.path",
                .what = path.empty() ? "a run needs data" : "there is no such file",
                .found = path,
                .expected = "a file of `minillm prepare`, or \"synthetic\"",
                .hint = "minillm prepare text.txt --out data.h5, then data.path=data.h5"});
  }
  return open_data(path);
}

void complete_config(LoadedConfig& loaded, const TokenFile* data) {
  Config& config = loaded.config;
  const Config written = config;  // which keys were derived is told by what they were before
  std::vector<Problem> problems =
      derive_and_check(config.model, data != nullptr ? data->vocab_size : 0, config.data.seq_len);
  const std::vector<Problem> of_release = problems_of(config.release, config.model);
  problems.insert(problems.end(), of_release.begin(), of_release.end());
  for (Problem& problem : problems) {
    problem = located(std::move(problem), written, loaded.origins);
  }
  fail_if_any(problems);
}

LoadedConfig completed_without_data(LoadedConfig loaded) {
  if (loaded.config.model.vocab_size == 0 && !loaded.config.data.path.empty()) {
    const TokenFile data = open_data_of(loaded);
    complete_config(loaded, &data);
  } else {
    complete_config(loaded, nullptr);
  }
  return loaded;
}

LoadedConfig load_without_data(const std::string& path, const std::vector<std::string>& overrides) {
  return completed_without_data(load_config(path, overrides));
}

}  // namespace minillm
