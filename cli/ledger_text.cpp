#include "cli/ledger_text.h"

#include "core/terminal.h"
#include "core/text.h"

#include <fmt/format.h>

#include <cmath>

namespace minillm::cli {

namespace {

std::string derivation_text(const TensorGroup& group) {
  std::string text = group.derivation;
  if (group.beside != 0) {
    const std::string_view where = group.kind->beside.empty() ? "where layers differ" : group.kind->beside;
    text += fmt::format(", {} {} {}", group.beside > 0 ? '+' : '-', thousands(std::abs(group.beside)), where);
  }
  return text;
}

JsonObject group_json(const TensorGroup& group) {
  JsonObject json;
  json.add("name", group.name());
  json.add("parameters", group.parameters);
  json.add("per_unit", group.per_unit);
  json.add("units", group.units);
  json.add("share", group.share);
  json.add("of", of_all);
  json.add("text_share", group.text_share);
  json.add("text_of", of_text);
  json.add("derivation", group.derivation);
  return json;
}

JsonObject gap_json(const GapItem& item) {
  JsonObject json;
  json.add("what", item.what);
  json.add("parameters", item.parameters);
  return json;
}

double ratio(int64_t part, int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string percent_text(double share) {
  const double percent = 100 * share;
  const bool is_tiny = percent > 0 && percent < 0.01;  // two decimals would leave nothing of it
  const int decimals = is_tiny ? 1 - static_cast<int>(std::floor(std::log10(percent))) : 2;
  return fmt::format("{:.{}f} %", percent, decimals);
}

std::string percent_text(int64_t part, int64_t whole) {
  return percent_text(ratio(part, whole));
}

std::string parts_text(const TensorCount& count) {
  const bool has_more = count.text_parameters != count.parameters;
  std::vector<std::string> headings = {"part", "parameters", "share"};
  if (has_more) {
    headings.emplace_back("of text");
  }
  for (const char* heading : {"per unit", "units", "per unit from shapes"}) {
    headings.emplace_back(heading);
  }
  Table table(headings);
  for (const TensorGroup& group : count.groups) {
    std::vector<std::string> cells = {std::string(group.name()), thousands(group.parameters),
                                      percent_text(group.share)};
    if (has_more) {
      cells.push_back(group.kind->in_text_model ? percent_text(group.text_share) : "-");
    }
    for (std::string cell : {thousands(group.per_unit), thousands(group.units), derivation_text(group)}) {
      cells.push_back(std::move(cell));
    }
    table.add_row(cells);
  }
  table.add_rule();
  if (has_more) {
    table.add_row({"text model", thousands(count.text_parameters),
                   percent_text(count.text_parameters, count.parameters), "100 %"});
  }
  table.add_row({"all", thousands(count.parameters), "100 %"});
  std::string text = table.text();
  text += fmt::format("shares are of {}{}", of_all, has_more ? fmt::format(", then of {}", of_text) : "");
  if (count.classic_estimate > 0) {
    text += fmt::format("; classic estimate 12 L d^2 + V d = {}, off by {}", thousands(count.classic_estimate),
                        thousands(count.gap()));
  }
  return text + "\n";
}

void add_count(JsonObject& json, const TensorCount& count) {
  std::vector<JsonObject> groups;
  for (const TensorGroup& group : count.groups) {
    groups.push_back(group_json(group));
  }
  std::vector<JsonObject> gap_items;
  for (const GapItem& item : count.gap_items) {
    gap_items.push_back(gap_json(item));
  }
  json.add("parameters", count.parameters);
  json.add("text_parameters", count.text_parameters);
  json.add("buffers", count.buffers);
  json.add("file_elements", count.file_elements());
  json.add("tensors", count.tensors);
  json.add("groups", groups);
  json.add("classic_estimate", count.classic_estimate);
  json.add("gap", count.gap());
  json.add("gap_items", gap_items);
}

void add_costs(JsonObject& json, const Ledger& ledger, std::string_view dtype) {
  json.add("active_parameters", ledger.active_parameters);
  json.add("flops_per_token", ledger.flops_per_token);
  json.add("ffn_flops_per_token", ledger.ffn_flops_per_token);
  json.add("score_flops_per_past_token", ledger.score_flops_per_past);
  json.add("crossover_context", ledger.crossover_context());
  json.add("kv_bytes_per_token", ledger.kv_values_per_token * stored_bytes(dtype));
  json.add("state_bytes", ledger.state_values * stored_bytes(dtype));
  json.add("recent_bytes", ledger.recent_values * stored_bytes(dtype));
}

void add_widths(JsonObject& json, const Ledger& ledger, const ModelConfig& config) {
  if (config.ffn != "none") {
    JsonObject width;
    width.add("d_ff", config.d_ff);
    width.add("of_d", ratio(config.d_ff, config.d_model));
    width.add("eight_thirds", ratio(8 * config.d_model, 3));
    width.add("rounded_16", gated_width(config.d_model, 16));
    width.add("rounded_256", gated_width(config.d_model, 256));
    json.add("ffn_width", width);
  }
  if (ledger.gate_parameters > 0) {
    JsonObject gate;
    gate.add("parameters", ledger.gate_parameters);
    gate.add("q_proj_rows", ledger.query_rows);
    gate.add("of_d2", ratio(ledger.gate_parameters, config.d_model * config.d_model));
    json.add("attention_gate", gate);
  }
}

std::string widths_text(const Ledger& ledger, const ModelConfig& config) {
  std::string text;
  if (config.ffn != "none") {
    text += fmt::format("d_ff {} is {:.4g} d", thousands(config.d_ff), ratio(config.d_ff, config.d_model));
    const bool is_dense_gated = config.ffn != "moe" && unit_kind(config) != nullptr;
    text += !is_dense_gated ? "\n"
                            : fmt::format("; 8 d / 3 = {:.2f}, up to a multiple of 16 {}, of 256 {}\n",
                                          ratio(8 * config.d_model, 3), thousands(gated_width(config.d_model, 16)),
                                          thousands(gated_width(config.d_model, 256)));
  }
  if (ledger.gate_parameters > 0) {
    text += fmt::format(
        "the gate of a layer's attention has {} parameters, {:.4g} d^2; q_proj writes {} rows, of which "
        "{} are queries\n",
        thousands(ledger.gate_parameters), ratio(ledger.gate_parameters, config.d_model * config.d_model),
        thousands(ledger.query_rows), thousands(config.n_heads * config.head_dim));
  }
  return text;
}

std::string stages_text(const std::vector<Stage>& stages) {
  Table table({"", "stage", "reads", "writes", "parameters", ""});
  for (size_t i = 0; i < stages.size(); ++i) {
    const Stage& stage = stages[i];
    table.add_row({std::to_string(i + 1), stage.name, stage.reads, stage.writes,
                   stage.parameters > 0 ? thousands(stage.parameters) : "-", stage.what});
  }
  return table.text();
}

void add_stages(JsonObject& json, const std::vector<Stage>& stages) {
  std::vector<JsonObject> objects;
  for (const Stage& stage : stages) {
    JsonObject object;
    object.add("name", stage.name);
    object.add("reads", stage.reads);
    object.add("writes", stage.writes);
    object.add("parameters", stage.parameters);
    object.add("what", stage.what);
    objects.push_back(object);
  }
  json.add("stages", objects);
}

}  // namespace minillm::cli
