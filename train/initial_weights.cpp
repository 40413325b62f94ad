#include "train/initial_weights.h"

#include "core/log.h"
#include "core/text.h"
#include "data/file_descriptor.h"
#include "data/sha256.h"
#include "data/user_block.h"
#include "formats/safetensors.h"
#include "optim/finite.h"
#include "train/checkpoint.h"
#include "train/complete_config.h"

#include <cmath>
#include <filesystem>
#include <optional>

namespace minillm {

namespace {

/// Settings under which the same weights are the same model: they may differ from those the weights were trained with.
bool keeps_weights_meaning(std::string_view key) {
  return key == "model.dropout" || key == "model.max_seq_len" || key == "model.rope_theta" || key == "model.norm_eps" ||
         key == "model.residual_out_init";
}

/// Names and shapes do not tell 4 heads from 8, so the settings are compared too.
void load_weights_of_run(Transformer& model, const LoadedConfig& loaded, const Checkpoint& checkpoint) {
  LoadedConfig source = parse_config(checkpoint.config(), checkpoint.path());
  complete_config(source, nullptr);
  std::vector<std::string> there;
  std::vector<std::string> here;
  for (const ConfigChange& change : diff(source.config, loaded.config)) {
    if (change.key.starts_with("model.") && !keeps_weights_meaning(change.key)) {
      there.push_back(change.key + " = " + change.before);
      here.push_back(change.key + " = " + change.after);
    }
  }
  std::string tensors;
  try {
    checkpoint.load_weights(model.parameters());
  } catch (const Error& error) {
    tensors = error.what();
  }
  if (!here.empty() || !tensors.empty()) {
    fail_input({.where = "--init",
                .what = fmt::format("the weights of {} belong to another model", checkpoint.path()),
                .found = join(there),
                .expected = join(here),
                .hint = tensors});
  }
}

/// What a file holds in the place of a weight: a float64 value may be finite there and not fit float32.
double stored_value(const Checkpoint* checkpoint, const std::string& path, const NonFinite& weight,
                    const ParameterStore& store) {
  for (const NamedTensor& named : store.named_tensors()) {
    if (named.name != weight.tensor) {
      continue;
    }
    const Buffer stored(named.value.shape, DType::float64);
    if (checkpoint != nullptr) {
      checkpoint->load_weight(weight.tensor, stored.tensor());
    } else {
      const SafetensorsFile file(path);
      file.read(*file.find(weight.tensor), stored.tensor());
    }
    return stored.tensor().at(weight.index);
  }
  return weight.value;
}

/// Training starts from finite weights. `checkpoint` is null when `path` is a safetensors file.
void check_finite(const Checkpoint* checkpoint, const std::string& path, const ParameterStore& store) {
  const std::optional<NonFinite> weight = first_non_finite_weight(store);
  if (!weight) {
    return;
  }
  const double stored = stored_value(checkpoint, path, *weight, store);
  const bool overflows = std::isfinite(stored);
  fail_input({.where = path,
              .what = weight->tensor +
                      (overflows ? " holds a value that does not fit float32" : " holds a value that is not finite"),
              .found = fmt::format("{} at element {}", stored, weight->index),
              .expected = overflows ? "at most 3.4e38 in size" : "finite weights",
              .hint = overflows ? "train.dtype = \"float64\" takes it" : ""});
}

bool is_checkpoint_file(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) &&
         guess_file_kind(read_bytes(path, UserBlock::size), std::filesystem::file_size(path, error)) ==
             "a minillm file";
}

}  // namespace

std::string load_initial_weights(Transformer& model, const LoadedConfig& loaded, const TokenFile& data,
                                 const std::string& init) {
  if (init.empty()) {
    return "";
  }
  std::string path = init;
  std::optional<Checkpoint> checkpoint;
  if (std::filesystem::is_directory(init) || is_checkpoint_file(init)) {
    checkpoint = open_checkpoint(init);
    path = checkpoint->path();
    load_weights_of_run(model, loaded, *checkpoint);
    const std::string tokenizer = checkpoint->tokenizer();
    if ((tokenizer.empty() ? "" : sha256_hex(tokenizer)) != data.tokenizer_sha256) {
      log_warning("{} was trained with another tokenizer than {}: its ids mean other text", path, data.path);
    }
  } else {
    load_into(model.parameters(), init);
  }
  check_finite(checkpoint ? &*checkpoint : nullptr, path, model.parameters());
  log_info("weights start from {}", path);
  return fmt::format("{} (sha256 {})", path, sha256_of_file(path));
}

}  // namespace minillm
