#include "suite/inspect_page.h"

#include "core/atomic_file.h"
#include "core/json_text.h"
#include "core/text.h"
#include "core/utf8.h"
#include "suite/page.h"

#include <cmath>
#include <filesystem>
#include <string_view>

namespace minillm {

namespace {

/// The first line of the page, which tells it from other people's.
constexpr std::string_view inspection_mark = "The page of `minillm inspect`";

// A weight is two digits, the higher first: a number of 4,095 steps. suite/inspect_maps.js reads them.
constexpr std::string_view map_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
constexpr double map_steps = 4095;

void add_weight(std::string& text, float weight) {
  const auto step = static_cast<size_t>(std::lround(static_cast<double>(weight) * map_steps));
  text += map_digits[step / map_digits.size()];
  text += map_digits[step % map_digits.size()];
}

/// The weights [H, N, N] of a layer, head after head and row after row; behind a mask without those that it hides.
std::string map_text(const std::vector<float>& weights, int64_t N, bool causal) {
  std::string text;
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto key = static_cast<int64_t>(i) % N;
    const auto query = static_cast<int64_t>(i) / N % N;
    if (!causal || key <= query) {
      add_weight(text, weights[i]);
    }
  }
  return text;
}

JsonObject maps_json(const Inspection& inspection, bool causal) {
  std::string layers;
  for (const LayerInspection& layer : inspection.layers) {
    layers += layers.empty() ? "" : ",";
    layers += layer.weights.empty() ? "null" : json_string(map_text(layer.weights, inspection.map_tokens, causal));
  }
  JsonObject json;
  json.add("tokens", inspection.map_tokens);
  json.add("causal", causal);
  json.add_raw("layers", "[" + layers + "]");
  return json;
}

}  // namespace

JsonObject inspection_json(const InspectedText& text, const Inspection& inspection) {
  JsonObject json;
  json.add("model", text.model);
  json.add("checkpoint", text.checkpoint);
  json.add("token_ids", text.token_ids);
  json.add("tokens", text.tokens);
  add_numbers(inspection, json);
  return json;
}

void check_inspection_page(const std::string& path) {
  if (!path.ends_with(".html")) {
    fail_input({.where = "--html",
                .what = "the attention maps are a page",
                .found = printable(path),
                .expected = "a name ending in .html"});
  }
  check_replaceable(path);
  check_ours(path, inspection_mark, "inspection");
}

void write_inspection_page(const std::string& path, const InspectedText& text, const Inspection& inspection) {
  JsonObject json = inspection_json(text, inspection);
  json.add("maps", maps_json(inspection, text.causal));
  std::filesystem::create_directories(folder_of(path));
  const std::string title = markup_text(valid_utf8(printable(text.model)));
  write_file_atomically(
      path, filled_page("inspect_page.html", {{"{{TITLE}}", title}, {"{{DATA}}", inside_script(json.text())}}));
}

}  // namespace minillm
