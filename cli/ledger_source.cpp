#include "cli/ledger_source.h"

#include "core/error.h"
#include "core/text.h"
#include "formats/huggingface_config.h"
#include "formats/safetensors.h"
#include "train/complete_config.h"
#include "train/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <utility>

namespace minillm::cli {

namespace {

Counted count_config(const std::string& name, const Config& config) {
  return {name, make_ledger(Transformer(config.model), config.release), config};
}

Counted count_huggingface(const std::string& path, const std::vector<std::string>& overrides) {
  const HuggingfaceConfig theirs = load_huggingface_config(path);
  LoadedConfig loaded;
  loaded.config.model = theirs.model;
  loaded.config.data.seq_len = std::min(loaded.config.data.seq_len, theirs.model.max_seq_len);
  loaded.config.release = theirs.release;
  loaded.config = with_overrides(loaded.config, overrides);
  for (const ConfigKey& key : config_keys()) {
    loaded.origins[key.path()] = path;  // for messages: it is the file that says it
  }
  complete_config(loaded, nullptr);
  Counted counted = count_config(path, loaded.config);
  counted.notes = theirs.notes;
  return counted;
}

/// "model-00001-of-00004.safetensors"
bool is_shard(const std::string& path) {
  static const std::regex pattern(R"(.*-\d+-of-\d+\.safetensors)");
  return std::regex_match(path, pattern);
}

Counted count_safetensors(const std::string& path, const std::vector<std::string>& overrides) {
  if (!overrides.empty()) {
    fail_input({.where = overrides.front(),
                .what = "a file of weights has no settings to change",
                .hint = "count its config.json instead"});
  }
  std::vector<CountedTensor> tensors;
  std::set<std::pair<uint64_t, uint64_t>> ranges;  // of values: a tied tensor stands in the file once
  int64_t packed = 0;
  int64_t tied = 0;
  for (const StoredTensor& tensor : read_safetensors_header(path)) {
    if (tensor.end > tensor.begin && !ranges.insert({tensor.begin, tensor.end}).second) {
      ++tied;
      continue;
    }
    tensors.push_back({tensor.name, tensor.shape, is_buffer(tensor)});
    const bool is_whole = tensor.dtype.starts_with("U") || tensor.dtype.starts_with("I");
    packed += is_whole && !tensors.back().is_buffer ? 1 : 0;
  }
  Counted counted{path, {count_tensors(tensors)}, std::nullopt};
  if (tied > 0) {
    counted.notes.push_back(fmt::format("{} tensors share the values of another and are not counted again", tied));
  }
  if (packed > 0) {
    counted.notes.push_back(fmt::format(
        "{} tensors hold whole numbers, which may be several parameters each or a scale of many: they count as stored",
        packed));
  }
  if (is_shard(path)) {
    counted.notes.emplace_back("it is one of several files of a model: its tensors alone are counted");
  }
  return counted;
}

}  // namespace

Counted count_model(const std::string& word, const std::vector<std::string>& overrides) {
  std::error_code error;
  const std::string preset = find_preset(word);
  if (!std::filesystem::exists(word, error) || (!preset.empty() && std::filesystem::is_directory(word, error))) {
    if (preset.empty()) {
      const std::vector<std::string> names = preset_names();
      std::string hint = did_you_mean(word, names);
      hint += (hint.empty() ? "" : " ") + fmt::format("the presets are {}", join(names));
      fail_input({.where = printable(word), .what = "is neither a file nor a preset", .hint = std::move(hint)});
    }
    return count_config(word, load_without_data(preset, overrides).config);
  }
  const std::filesystem::path path(word);
  if (path.extension() == ".safetensors") {
    return count_safetensors(word, overrides);
  }
  if (path.extension() == ".json") {
    return count_huggingface(word, overrides);
  }
  return count_config(word, load_without_data(word, overrides).config);
}

}  // namespace minillm::cli
