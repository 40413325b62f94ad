#include "train/loaded_run.h"

#include "train/checkpoint.h"
#include "train/complete_config.h"
#include "train/trainer.h"

namespace minillm {

namespace {

/// Ids mean the same when one tokenizer made them; where there is none, as far as can be told.
void check_fits(const LoadedRun& run, const TokenFile& data) {
  if (run.tokenizer_sha256 != data.tokenizer_sha256) {
    const auto name = [](const std::string& sha256) { return sha256.empty() ? std::string("none") : sha256; };
    const std::string from_text =
        "minillm prepare TEXT --tokenizer " + run.config.data.path + " makes ids that fit this model";
    const std::string from_ids = "the model knows imported ids: minillm import-tokens makes a data file of them";
    fail_input({.where = data.path,
                .what = "was made with another tokenizer than " + run.checkpoint,
                .found = "SHA-256 " + name(data.tokenizer_sha256),
                .expected = name(run.tokenizer_sha256),
                .hint = run.tokenizer != nullptr ? from_text : from_ids});
  }
  if (data.vocab_size > run.config.model.vocab_size) {
    fail_input({.where = data.path,
                .what = "has a larger vocabulary than the model of " + run.checkpoint,
                .found = std::to_string(data.vocab_size),
                .expected = fmt::format("at most {}", run.config.model.vocab_size)});
  }
}

}  // namespace

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

TokenFile open_data_for(const LoadedRun& run, const std::string& path) {
  const std::string& file = path.empty() ? run.config.data.path : path;
  if (file.empty()) {
    fail_input({.where = run.checkpoint,
                .what = "was imported: the run has no data of its own",
                .hint = "name a file of minillm import-tokens with --data"});
  }
  TokenFile data = open_data(file);
  check_fits(run, data);
  return data;
}

}  // namespace minillm
