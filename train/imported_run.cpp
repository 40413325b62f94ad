#include "train/imported_run.h"

#include "core/log.h"
#include "core/text.h"
#include "core/utf8.h"
#include "data/sha256.h"
#include "optim/finite.h"
#include "train/banner.h"
#include "train/checkpoint.h"
#include "train/complete_config.h"
#include "train/memory_estimate.h"
#include "train/run_folder.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace minillm {

namespace {

/// Reads the checkpoint into the model's memory, and every tensor of the file anew beside it.
void compare_with_file(const std::string& checkpoint, const WeightFile& file, Transformer& model) {
  fill_zero(model.parameters().weights());
  Checkpoint(checkpoint).load_weights(model.parameters());
  for (const NamedTensor& written : model.parameters().named_tensors()) {
    const Buffer original(written.value.shape, DType::float32);
    file.read(*file.find(written.name), original.tensor());
    if (std::memcmp(original.tensor().data, written.value.data, written.value.bytes()) != 0) {
      fail_work({.where = checkpoint,
                 .what = fmt::format("{} was read back with other values than in {}", written.name, file.path()),
                 .hint = "the disk or the memory is not to be trusted, or the file changed meanwhile: import again"});
    }
  }
}

/// Writes the run into its folder; the config comes last, and makes a run of it.
void write_run(const LoadedConfig& loaded, const ForeignModel& source, Transformer& model) {
  const std::string& folder = loaded.config.run.out;
  const std::string config_text = to_toml(loaded.config, loaded.origins);
  RunState state;
  std::vector<std::string> parts;
  for (const WeightPart& part : source.weights.parts()) {
    parts.push_back(fmt::format("{} (sha256 {})", part.path, sha256_of_file(part.path)));
  }
  state.texts["init"] = join(parts);
  save_checkpoint(folder, {model.parameters(), nullptr, state, config_text, source.tokenizer}, 1);
  compare_with_file(checkpoint_path(folder, 0), source.weights, model);
  write_run_config(folder, config_text);
}

/// After a failure nothing is left: what was made is removed, and a run that was moved aside comes back.
void take_back(const OwnedFolder& owned) {
  const std::string& folder = owned.path;
  std::error_code error;
  for (const std::string& made : {checkpoint_path(folder, 0), checkpoints_path(folder), folder}) {
    std::filesystem::remove(made, error);  // a folder only when it is empty
  }
  if (!owned.moved_to.empty() && !std::filesystem::exists(folder, error)) {
    std::filesystem::rename(owned.moved_to, folder, error);
  }
}

}  // namespace

LoadedConfig config_for(const ForeignModel& model, const std::string& file, const std::string& out) {
  std::string name = valid_utf8(std::filesystem::path(file).stem().string());
  std::replace_if(  // a file's name may hold bytes that a run's must not
      name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '_');
  LoadedConfig loaded = parse_config("", file, {"run.name=" + toml_quoted(name), "run.out=" + toml_quoted(out)});
  Config& config = loaded.config;
  config.model = model.config;
  for (const ConfigChange& fixed : diff(Config{}, config)) {
    if (fixed.key.starts_with("model.")) {
      loaded.origins[fixed.key] = valid_utf8(file);
    }
  }
  config.data.seq_len = config.model.max_seq_len;
  config.train.micro_batch_size = 1;  // divides whatever batch is asked for, and takes the least memory
  complete_config(loaded, nullptr);
  return loaded;
}

void read_foreign_weights(Transformer& model, const WeightFile& file) {
  model.allocate(DType::float32, 0, false);
  load_into(model.parameters(), file);
  if (const std::optional<NonFinite> weight = first_non_finite_weight(model.parameters())) {
    fail_input({.where = file.path(),
                .what = weight->tensor + " is not finite; such weights are not imported",
                .found = fmt::format("{} at element {}", weight->value, weight->index)});
  }
}

ImportedRun import_run(const ImportRequest& request) {
  check_folder_name(request.out);
  const ForeignModel source = open_foreign_model(request.file);
  const LoadedConfig loaded = config_for(source, request.file, request.out);
  Transformer model(loaded.config.model);
  check_import_fits(model, printable(request.file));
  read_foreign_weights(model, source.weights);
  const OwnedFolder folder =
      create_run_folder({.folder = request.out, .force = request.force, .inputs = {request.file}});
  try {
    write_run(loaded, source, model);
  } catch (...) {
    take_back(folder);
    throw;
  }
  if (!folder.moved_to.empty()) {
    log_info("the old run is now {}", folder.moved_to);
  }
  ImportedRun run;
  run.file = request.file;
  run.format = source.format;
  run.dropped = source.dropped;
  run.has_tokenizer = !source.tokenizer.empty();
  run.tokenizer_file = source.tokenizer_file;
  run.config = loaded.config;
  run.checkpoint = checkpoint_path(loaded.config.run.out, 0);
  run.tensors = source.weights.tensors().size();
  run.parameters = parameter_table(model);
  return run;
}

std::string ImportedRun::to_text() const {
  const ModelConfig& m = config.model;
  std::string folder = config.run.out;
  while (folder.size() > 1 && folder.back() == '/') {
    folder.pop_back();
  }
  std::string text = fmt::format("{}: {}\n", printable(file), format);
  text += fmt::format("{} layers, d_model {}, {} heads, d_ff {}, {} positions, vocabulary {}\n", m.n_layers, m.d_model,
                      m.n_heads, m.d_ff, thousands(m.max_seq_len), thousands(m.vocab_size));
  text += parameters;
  text += fmt::format("{}: {} tensors, read back and equal to the file's bit for bit\n", checkpoint, tensors);
  text += dropped.empty() ? "" : "left out: " + dropped + "\n";
  text += next_commands(folder);
  return text;
}

std::string ImportedRun::next_commands(const std::string& folder) const {
  std::string text = "next:\n";
  if (has_tokenizer) {
    const std::string words = tokenizer_file.empty() ? "hf/tokenizer.model" : shell_word(tokenizer_file);
    text += fmt::format("  minillm generate {}\n", shell_word(folder));
    text += tokenizer_file.empty()
                ? fmt::format("  minillm export {} --format huggingface --out hf\n", shell_word(folder))
                : "";
    text += fmt::format("  minillm prepare text.txt --tokenizer {} --out data.h5\n", words);
  } else {
    text = "there is no tokenizer inside: the run is evaluated and trained on imported tokens, generate refuses it\n" +
           text;
    text += fmt::format("  minillm import-tokens train.bin --val-file val.bin --vocab {} --out data.h5\n",
                        config.model.vocab_size);
  }
  text += fmt::format("  minillm eval {} --data data.h5\n", shell_word(folder));
  text += fmt::format("  minillm train {} --init {} --out {} data.path=data.h5 optim.lr=1e-4\n",
                      shell_word(config_path(folder)), shell_word(folder), shell_word(folder + "_tuned"));
  return text;
}

}  // namespace minillm
