// minillm ledger: where parameters are and what they cost, of a config, a preset, a Hugging Face config.json or the
// header of a safetensors file. Reads no weights and no data.

#include "cli/command.h"
#include "cli/config_json.h"
#include "cli/ledger_source.h"
#include "cli/ledger_text.h"
#include "core/json_text.h"
#include "core/terminal.h"
#include "core/text.h"

#include <cstdio>
#include <filesystem>
#include <optional>

namespace minillm::cli {

namespace {

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
      {fmt::format("the gap, {} of {}", percent_text(count.gap(), count.parameters), of_all), thousands(count.gap())});
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
  if (ledger.recent_values > 0) {
    text += fmt::format("beside the states the last inputs of the convolutions are kept: {}\n",
                        size_text(width * static_cast<double>(ledger.recent_values)));
  }
  const double crossover = ledger.crossover_context();
  if (crossover > 0) {
    text += fmt::format(
        "scores and weighted sums cost as much as the FFN's matrices at {:.6g} past tokens; "
        "over a whole sequence, where\na token sees half of it on average, at {:.6g}. Projections, softmax, the "
        "states of linear layers and the head are not counted.\n",
        crossover, ledger.sequence_crossover());
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
  if (counted.config) {
    fmt::print("{}", widths_text(ledger, counted.config->model));
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
    add_widths(json, ledger, counted.config->model);
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

/// A row of the comparison: a number of each model.
struct ComparedRow {
  std::string name;
  std::vector<std::optional<int64_t>> parameters = {};  ///< none: not there, or not known of a file of weights
  bool begins_sums = false;                             ///< sums of parts from here on
};

std::vector<ComparedRow> compared_rows(const std::vector<Counted>& models) {
  std::vector<ComparedRow> rows;
  for (const GroupKind& kind : group_kinds()) {
    ComparedRow row{std::string(kind.name)};
    bool is_anywhere = false;
    for (const Counted& model : models) {
      const TensorGroup* group = model.ledger.find(kind.name);
      is_anywhere = is_anywhere || group != nullptr;
      row.parameters.push_back(group == nullptr ? std::nullopt : std::optional(group->parameters));
    }
    if (is_anywhere) {
      rows.push_back(row);
    }
  }
  ComparedRow tables{.name = "embeddings and head", .begins_sums = true};
  ComparedRow text{"text model"};
  ComparedRow active{"works on a token"};
  ComparedRow all{"all"};
  for (const Counted& model : models) {
    int64_t of_tables = 0;
    for (const char* name : {"embed_tokens", "embed_positions", "lm_head"}) {
      const TensorGroup* group = model.ledger.find(name);
      of_tables += group == nullptr ? 0 : group->parameters;
    }
    tables.parameters.emplace_back(of_tables);
    text.parameters.emplace_back(model.ledger.text_parameters);
    active.parameters.push_back(model.config ? std::optional(model.ledger.active_parameters) : std::nullopt);
    all.parameters.emplace_back(model.ledger.parameters);
  }
  rows.insert(rows.end(), {tables, text, active, all});
  return rows;
}

/// "same" where two models agree, else by how much the second has more.
std::string difference_text(const ComparedRow& row, bool is_known) {
  if (!is_known) {
    return "-";
  }
  const int64_t more = row.parameters[1].value_or(0) - row.parameters[0].value_or(0);
  if (more == 0) {
    return "same";
  }
  return (more > 0 ? "+" : "") + thousands(more);
}

/// Models side by side: a row a part; of two models also where they differ.
void print_comparison(const std::vector<Counted>& models) {
  std::vector<std::string> headings = {"part"};
  for (const Counted& model : models) {
    headings.push_back(std::filesystem::path(model.name).filename().string());
    headings.emplace_back("share");
  }
  const bool are_two = models.size() == 2;
  if (are_two) {
    headings.emplace_back("difference");
  }
  Table table(headings);
  bool are_sums = false;
  for (const ComparedRow& row : compared_rows(models)) {
    if (row.begins_sums) {
      are_sums = true;
      table.add_rule();
    }
    std::vector<std::string> cells = {row.name};
    for (size_t i = 0; i < models.size(); ++i) {
      const std::optional<int64_t> parameters = row.parameters[i];
      cells.push_back(parameters ? thousands(*parameters) : "-");
      cells.push_back(parameters ? percent_text(*parameters, models[i].ledger.parameters) : "-");
    }
    if (are_two) {
      const bool is_known = row.parameters[0] && row.parameters[1];
      cells.push_back(difference_text(row, is_known || !are_sums));  // a part that is not there has no parameters
    }
    table.add_row(cells);
  }
  fmt::print("{}shares are of each model's parameters\n", table.text());
  for (const Counted& model : models) {
    if (model.config) {
      fmt::print("\n{}: {}", model.name, widths_text(model.ledger, model.config->model));
    }
  }
}

/// The way through the whole model, or through one of its layers.
void print_stages(const Counted& counted, const std::optional<int64_t>& layer, bool as_json) {
  if (!counted.config) {
    fail_input({.where = counted.name,
                .what = "a file of weights does not say how its layers are joined",
                .hint = "count its config.json"});
  }
  const ModelConfig& config = counted.config->model;
  if (layer && *layer >= config.n_layers) {
    fail_input({.where = "--layer",
                .what = "there is no such layer",
                .found = std::to_string(*layer),
                .expected = fmt::format("0 to {}", config.n_layers - 1)});
  }
  const Transformer model(config);
  const std::vector<Stage> stages = layer ? layer_steps(model, *layer) : model_stages(model);
  if (as_json) {
    JsonObject json;
    json.add("name", counted.name);
    add_stages(json, stages);
    json.add("residual_writes", residual_writes(config));
    std::printf("%s\n", json.text().c_str());
    return;
  }
  const std::string what = layer ? fmt::format("layer {}", *layer) : "from token ids to logits";
  fmt::print("{}, {}; T tokens:\n{}{} sublayers write in {} layers\n", counted.name, what, stages_text(stages),
             residual_writes(config), config.n_layers);
}

int run_ledger(const Arguments& arguments) {
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
    models.push_back(count_model(word, arguments.overrides()));
  }
  const bool steps = arguments.given("layer");
  if (steps || arguments.given("stages")) {
    if (compares || context > 0 || (steps && arguments.given("stages"))) {
      fail_input({.where = steps ? "--layer" : "--stages", .what = "stands alone, beside --json"});
    }
    std::optional<int64_t> layer;
    if (steps) {
      layer = arguments.integer("layer", 0, most_layers);
    }
    print_stages(models.front(), layer, arguments.given("json"));
    return 0;
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
                       {"stages", "", "", "the way from token ids to logits, with shapes"},
                       {"layer", "N", "", "the steps through layer N, counted from 0"},
                       {"json", "", "", "one JSON object on standard output"}},
           .examples = {"minillm ledger qwen3.8-27b", "minillm ledger configs/baseline.toml --context 4096",
                        "minillm ledger --compare gpt2 configs/baseline.toml qwen3.8-27b"}},
          run_ledger};
}

}  // namespace minillm::cli
