// minillm ledger: where parameters are and what they cost, of a config, a preset, a Hugging Face config.json or the
// header of a safetensors file. Reads no weights and no data.

#include "cli/command.h"
#include "cli/config_json.h"
#include "cli/ledger_text.h"
#include "core/json_text.h"
#include "core/terminal.h"
#include "core/text.h"
#include "data/file_descriptor.h"
#include "formats/huggingface_config.h"
#include "formats/safetensors.h"
#include "train/complete_config.h"
#include "train/presets.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <regex>
#include <set>
#include <utility>

namespace minillm::cli {

namespace {

/// What was counted. Without a config (a file of weights) there are tensors alone.
struct Counted {
  std::string name;
  Ledger ledger;
  std::optional<Config> config;
  std::vector<std::string> notes = {};

  /// Of what a decoder keeps and of released weights.
  std::string_view dtype() const { return config ? std::string_view(config->stored_dtype()) : "float32"; }

  /// Weights, gradients and AdamW's two moments. In float32 as many as with bfloat16 weights and gradients beside
  /// float32 weights.
  int64_t bytes_per_parameter() const { return config && config->train.dtype == "float64" ? 32 : 16; }
};

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

/// The word may be a path or a preset's name.
Counted count(const std::string& word, const std::vector<std::string>& overrides) {
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

/// One layer's parts beside each other.
std::string layer_text(const TensorCount& count) {
  const TensorGroup* full = count.find("full_attention");
  const TensorGroup* linear = count.find("linear_attention");
  const TensorGroup* ffn = count.find("ffn");
  std::vector<std::string> lines;
  if (full != nullptr && linear != nullptr) {
    lines.push_back(fmt::format("a layer of linear attention has {} parameters more than one of full attention",
                                thousands(linear->per_unit - full->per_unit)));
  }
  if (full != nullptr && ffn != nullptr && full->per_unit > 0) {
    lines.push_back(fmt::format("an FFN is {:.4g} times a layer of full attention",
                                static_cast<double>(ffn->per_unit) / static_cast<double>(full->per_unit)));
  }
  return lines.empty() ? "" : "one layer: " + join(lines, "; ") + "\n";
}

std::string gap_text(const TensorCount& count) {
  if (count.classic_estimate == 0 || count.parameters == 0) {
    return "";
  }
  Table table({"beside the classic estimate", "parameters"});
  for (const GapItem& item : count.gap_items) {
    table.add_row({item.what, thousands(item.parameters)});
  }
  table.add_rule();
  table.add_row(
      {fmt::format("the gap, {} of {}",
                   percent_text(static_cast<double>(count.gap()) / static_cast<double>(count.parameters)), of_all),
       thousands(count.gap())});
  return "\n" + table.text();
}

/// "444.50 GB", "34.23 GFLOP": four digits or more, where 1 % counts.
std::string scaled_text(double number, std::string_view unit) {
  constexpr std::pair<double, std::string_view> prefixes[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [factor, prefix] : prefixes) {
    if (number >= factor) {
      return fmt::format("{:.2f} {}{}", number / factor, prefix, unit);
    }
  }
  return fmt::format("{} {}", number, unit);
}

std::string size_text(double bytes) {
  return scaled_text(bytes, "B");
}

std::string memory_text(const Counted& counted) {
  const auto parameters = static_cast<double>(counted.ledger.parameters);
  const auto width = static_cast<double>(stored_bytes(counted.dtype()));
  const int64_t each = counted.bytes_per_parameter();
  std::string text = fmt::format(
      "\ntraining takes {} bytes a parameter, {}: weights, gradients and AdamW's two moments{}\n", each,
      size_text(static_cast<double>(each) * parameters),
      each == 16 ? " in float32; or bfloat16 weights and gradients beside float32 weights and moments" : "");
  if (counted.config) {
    text += fmt::format("the weights alone in {}: {}\n", counted.dtype(), size_text(width * parameters));
  }
  if (counted.ledger.buffers > 0) {
    text += fmt::format("files also hold {} elements that are no parameters (buffers): {} in all\n",
                        thousands(counted.ledger.buffers), thousands(counted.ledger.file_elements()));
  }
  return text;
}

/// Forward costs of the next token behind T past ones, and what a decoder keeps of them.
std::string context_text(const Counted& counted, const std::vector<int64_t>& contexts) {
  const Ledger& ledger = counted.ledger;
  const auto width = static_cast<double>(stored_bytes(counted.dtype()));
  Table table({"context", "scores", "FFN", "scores / FFN", "cache", "state"});
  for (const int64_t context : contexts) {
    const auto scores = static_cast<double>(ledger.score_flops_per_past) * static_cast<double>(context);
    const auto ffn = static_cast<double>(ledger.ffn_flops_per_token);
    const double cache = width * static_cast<double>(ledger.kv_values_per_token) * static_cast<double>(context);
    table.add_row({thousands(context), scaled_text(scores, "FLOP"), scaled_text(ffn, "FLOP"),
                   ffn > 0 ? fmt::format("{:.4f}", scores / ffn) : "-", size_text(cache),
                   size_text(width * static_cast<double>(ledger.state_values))});
  }
  std::string text = fmt::format("\ndecoding one token, keys and values in {}:\n{}", counted.dtype(), table.text());
  const double crossover = ledger.crossover_context();
  if (crossover > 0) {
    text += fmt::format(
        "scores and weighted sums cost as much as the FFN's matrices at {:.6g} past tokens; "
        "over a whole sequence, where\na token sees half of it on average, at {:.6g}. Projections, softmax and the "
        "head are not counted.\n",
        crossover, 2 * crossover - 1);
  }
  return text;
}

std::vector<Finding> lints_of(const Counted& counted, int64_t context) {
  return counted.config ? audible(lint_ledger(*counted.config, counted.ledger, context), *counted.config)
                        : lint_count(counted.ledger);
}

std::vector<int64_t> contexts_of(const Config& config, int64_t wanted) {
  if (wanted > 0) {
    return {wanted};
  }
  std::vector<int64_t> contexts;
  for (int64_t context = config.model.max_seq_len; context >= 1 && contexts.size() < 5; context /= 4) {
    contexts.insert(contexts.begin(), context);
  }
  return contexts;
}

void print_text(const Counted& counted, int64_t context) {
  const Ledger& ledger = counted.ledger;
  fmt::print("{}: {} parameters in {} tensors\n\n{}{}", counted.name, thousands(ledger.parameters),
             thousands(ledger.tensors), parts_text(ledger), layer_text(ledger));
  if (counted.config && ledger.active_parameters != ledger.text_parameters) {
    fmt::print("of the text model's {} parameters {} work on one token: the chosen experts'\n",
               thousands(ledger.text_parameters), thousands(ledger.active_parameters));
  }
  fmt::print("{}{}", gap_text(ledger), memory_text(counted));
  if (counted.config) {
    fmt::print("{}", context_text(counted, contexts_of(*counted.config, context)));
  }
  for (const Finding& finding : lints_of(counted, context)) {
    fmt::print("{}\n", describe(finding));
  }
  for (const std::string& note : counted.notes) {
    fmt::print("note: {}\n", note);
  }
}

JsonObject to_json(const Counted& counted, int64_t context) {
  const Ledger& ledger = counted.ledger;
  JsonObject json;
  json.add("name", counted.name);
  if (counted.config) {
    json.add("config", config_json(*counted.config));
  } else {
    json.add_null("config");
  }
  add_count(json, ledger);
  json.add("training_bytes", counted.bytes_per_parameter() * ledger.parameters);
  if (counted.config) {
    add_costs(json, ledger, counted.dtype());
    const int64_t at = context > 0 ? context : counted.config->model.max_seq_len;
    json.add("context", at);
    json.add("scores_to_ffn",
             ledger.crossover_context() > 0 ? static_cast<double>(at) / ledger.crossover_context() : 0);
  }
  json.add("lints", findings_json(lints_of(counted, context)));
  std::string notes;
  for (const std::string& note : counted.notes) {
    notes += (notes.empty() ? "" : ",") + json_string(note);
  }
  json.add_raw("notes", "[" + notes + "]");
  return json;
}

/// Models side by side: a row a part.
void print_comparison(const std::vector<Counted>& models) {
  std::vector<std::string> headings = {"part"};
  for (const Counted& model : models) {
    headings.push_back(std::filesystem::path(model.name).filename().string());
    headings.emplace_back("share");
  }
  Table table(headings);
  for (const GroupKind& kind : group_kinds()) {
    std::vector<std::string> cells = {std::string(kind.name)};
    bool is_anywhere = false;
    for (const Counted& model : models) {
      const TensorGroup* group = model.ledger.find(kind.name);
      is_anywhere = is_anywhere || group != nullptr;
      cells.push_back(group == nullptr ? "-" : thousands(group->parameters));
      cells.push_back(group == nullptr ? "-" : percent_text(group->share));
    }
    if (is_anywhere) {
      table.add_row(cells);
    }
  }
  table.add_rule();
  std::vector<std::string> sums = {"all"};
  for (const Counted& model : models) {
    sums.push_back(thousands(model.ledger.parameters));
    sums.emplace_back("100 %");
  }
  table.add_row(sums);
  fmt::print("{}shares are of each model's parameters\n", table.text());
}

int run(const Arguments& arguments) {
  const int64_t context = arguments.given("context") ? arguments.integer("context", 1, most_size) : 0;
  const bool compares = arguments.given("compare");
  if (!compares && arguments.words().size() != 1) {
    fail_input({.where = arguments.words()[1], .what = "one model at a time", .hint = "--compare shows several"});
  }
  if (compares && context > 0) {
    fail_input({.where = "--context", .what = "goes with one model", .hint = "leave --compare out"});
  }
  std::vector<Counted> models;
  for (const std::string& word : arguments.words()) {
    models.push_back(count(word, arguments.overrides()));
  }
  if (context > 0 && !models.front().config) {
    fail_input({.where = "--context",
                .what = "a file of weights does not say how its layers attend",
                .hint = "count its config.json"});
  }
  if (compares && arguments.given("json")) {
    std::vector<JsonObject> objects;
    objects.reserve(models.size());
    for (const Counted& model : models) {
      objects.push_back(to_json(model, context));
    }
    JsonObject json;
    json.add("models", objects);
    std::printf("%s\n", json.text().c_str());
  } else if (compares) {
    print_comparison(models);
  } else if (arguments.given("json")) {
    std::printf("%s\n", to_json(models.front(), context).text().c_str());
  } else {
    print_text(models.front(), context);
  }
  return 0;
}

}  // namespace

Command ledger_command() {
  return {{.name = "ledger",
           .words = "CONFIG.toml|PRESET|config.json|FILE.safetensors...",
           .summary = "counts parameters, FLOPs, caches and memory of any model; reads no weights",
           .note = "A preset is a config of configs/presets by its name; configs' settings can be overridden.",
           .min_words = 1,
           .max_words = 8,
           .overrides = true,
           .options = {{"compare", "", "", "models side by side"},
                       {"context", "T", "", "past tokens that a token is decoded behind"},
                       {"json", "", "", "one JSON object on standard output"}},
           .examples = {"minillm ledger qwen3.8-27b", "minillm ledger configs/baseline.toml --context 4096",
                        "minillm ledger --compare gpt2 configs/baseline.toml qwen3.8-27b"}},
          run};
}

}  // namespace minillm::cli
