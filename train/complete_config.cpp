#include "train/complete_config.h"

namespace minillm {

void complete_config(LoadedConfig& loaded, const TokenFile* data) {
  Config& config = loaded.config;
  const Config written = config;  // which keys were derived is told by what they were before
  std::vector<Problem> problems =
      derive_and_check(config.model, data != nullptr ? data->vocab_size : 0, config.data.seq_len);
  for (Problem& problem : problems) {
    problem = located(std::move(problem), written, loaded.origins);
  }
  fail_if_any(problems);
}

}  // namespace minillm
