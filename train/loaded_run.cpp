#include "train/loaded_run.h"

#include "core/text.h"
#include "train/checkpoint.h"
#include "train/complete_config.h"
#include "train/imported_run.h"
#include "train/memory_estimate.h"
#include "train/trainer.h"

#include <filesystem>

namespace minillm {

namespace {

/// Whether `minillm prepare --tokenizer path` would take the tokenizer of this SHA-256 from it.
bool holds_tokenizer(const std::string& path, const std::string& sha256) {
  try {
    return H5Reader(path, token_format()).string_attribute("/", "tokenizer_sha256") == sha256;
  } catch (const Error&) {
    return false;  // it was moved, replaced or is the built-in corpus
  }
}

std::string how_to_get_fitting_data(const LoadedRun& run) {
  const std::string& path = run.config.data.path;
  if (run.tokenizer_sha256.empty()) {
    return "the run was trained on imported tokens: import ids of the same vocabulary with minillm import-tokens";
  }
  if (path == "synthetic") {
    return "the run was trained on the built-in corpus, which is read when no other file is given";
  }
  return holds_tokenizer(path, run.tokenizer_sha256)
             ? "minillm prepare TEXT --tokenizer " + shell_word(path) + " makes ids that fit this model"
             : "";
}

/// Ids mean the same when one tokenizer made them; where there is none, as far as can be told.
void check_fits(const LoadedRun& run, const TokenFile& data) {
  if (run.tokenizer_sha256 != data.tokenizer_sha256) {
    const auto name = [](const std::string& sha256) { return sha256.empty() ? std::string("none") : sha256; };
    fail_input({.where = data.path,
                .what = "was made with another tokenizer than " + run.checkpoint,
                .found = "SHA-256 " + name(data.tokenizer_sha256),
                .expected = name(run.tokenizer_sha256),
                .hint = how_to_get_fitting_data(run)});
  }
  if (data.vocab_size > run.config.model.vocab_size) {
    fail_input({.where = data.path,
                .what = "its vocabulary does not fit the model of " + run.checkpoint,
                .found = fmt::format("vocab_size {}", data.vocab_size),
                .expected = fmt::format("at most {}", run.config.model.vocab_size),
                .hint = "give data with the ids that the run was trained on"});
  }
}

void take_tokenizer(LoadedRun& loaded, const std::string& serialized) {
  if (!serialized.empty()) {
    loaded.tokenizer = load_tokenizer(serialized, loaded.checkpoint);
    loaded.tokenizer_sha256 = loaded.tokenizer->sha256();
  }
}

LoadedRun load_foreign(const std::string& path) {
  const ForeignModel source = open_foreign_model(path);
  LoadedRun loaded;
  loaded.config = config_for(source, path, "").config;
  loaded.checkpoint = source.weights.path();
  loaded.model = std::make_unique<Transformer>(loaded.config.model);
  check_weights_fit(*loaded.model, DType::float32, loaded.checkpoint);
  read_foreign_weights(*loaded.model, source.weights);
  take_tokenizer(loaded, source.tokenizer);
  return loaded;
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
  check_weights_fit(*loaded.model, model_dtype(loaded.config.train), checkpoint.path());
  loaded.model->allocate(model_dtype(loaded.config.train), loaded.config.train.seed, false);
  checkpoint.load_weights(loaded.model->parameters());
  take_tokenizer(loaded, checkpoint.tokenizer());
  return loaded;
}

LoadedRun load_model(const std::string& path, const std::string& which) {
  if (!is_foreign_model(path)) {
    return load_run(path, which);
  }
  if (which != "last") {
    fail_input({.where = "--checkpoint", .what = "is for runs: a model's file has one state", .found = which});
  }
  return load_foreign(path);
}

TokenFile open_data_for(const LoadedRun& run, const std::string& path) {
  const std::string& file = path.empty() ? run.config.data.path : path;
  if (file.empty()) {
    fail_input({.where = run.checkpoint,
                .what = "was imported: the run has no data of its own",
                .hint = "name a file of minillm import-tokens with --data"});
  }
  std::error_code error;
  if (path.empty() && file != "synthetic" && !std::filesystem::exists(file, error)) {
    fail_input({.where = file,
                .what = "the run's data is not there: the path in its config.toml, from the current folder",
                .expected = "the folder where the run was trained",
                .hint = "go there, or name the file with --data"});
  }
  TokenFile data = open_data(file);
  check_fits(run, data);
  return data;
}

}  // namespace minillm
