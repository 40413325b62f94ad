#include "cli/layers_text.h"

#include "core/terminal.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace minillm::cli {

namespace {

std::string share_text(double share) {
  return std::isnan(share) ? "-" : fmt::format("{:.1f} %", 100 * share);
}

}  // namespace

std::string number_text(double number) {
  return std::isnan(number) ? "-" : fmt::format("{:.4g}", number);
}

std::string gates_text(const std::vector<LayerStatistics>& layers) {
  Table table({"layer", "gate of", "mean", "below 0", "above 1"});
  bool has_gate = false;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const LayerStatistics& at = layers[layer];
    for (const auto& [part, gate] : {std::pair("mixer", at.mixer_gate), std::pair("FFN", at.ffn_gate)}) {
      if (!std::isnan(gate.mean)) {
        has_gate = true;
        table.add_row(
            {std::to_string(layer), part, number_text(gate.mean), share_text(gate.below_0), share_text(gate.above_1)});
      }
    }
  }
  return has_gate ? "\n" + table.text() : "";
}

}  // namespace minillm::cli
