#include "train/loaded_run.h"

#include "train/checkpoint.h"
#include "train/complete_config.h"
#include "train/trainer.h"

namespace minillm {

LoadedRun load_run(const std::string& run, const std::string& which) {
  const Checkpoint checkpoint = open_checkpoint(run, which);
  LoadedRun loaded;
  LoadedConfig config = parse_config(checkpoint.config(), checkpoint.path());
  complete_config(config, nullptr);
  loaded.config = config.config;
  loaded.checkpoint = checkpoint.path();
  loaded.step = checkpoint.step();
  loaded.model = std::make_unique<Transformer>(loaded.config.model);
  loaded.model->allocate(model_dtype(loaded.config.train), loaded.config.train.seed, false);
  checkpoint.load_weights(loaded.model->parameters());
  const std::string serialized = checkpoint.tokenizer();
  if (!serialized.empty()) {
    loaded.tokenizer = load_tokenizer(serialized, checkpoint.path());
    loaded.tokenizer_sha256 = loaded.tokenizer->sha256();
  }
  return loaded;
}

void check_same_tokenizer(const LoadedRun& run, const TokenFile& data) {
  if (run.tokenizer_sha256 == data.tokenizer_sha256) {
    return;
  }
  const auto name = [](const std::string& sha256) { return sha256.empty() ? std::string("none") : sha256; };
  fail_input({.where = data.path,
              .what = "was made with another tokenizer than " + run.checkpoint,
              .found = "SHA-256 " + name(data.tokenizer_sha256),
              .expected = name(run.tokenizer_sha256),
              .hint = "minillm prepare TEXT --tokenizer " + run.config.data.path + " makes ids that fit this model"});
}

}  // namespace minillm
