// A recorded tape as a table.

#include "core/text.h"
#include "train/tape_drawing.h"
#include "train/tape_lanes.h"

#include <algorithm>

namespace minillm {

namespace {

std::string operands_text(const NodeRecord& node) {
  std::string text;
  for (const NodeId operand : node.operands) {
    text += fmt::format("{}#{}", text.empty() ? "" : " ", operand);
  }
  return text;
}

std::string milliseconds_text(double seconds) {
  return seconds > 0 ? fmt::format("{:.4f}", 1e3 * seconds) : "-";
}

}  // namespace

std::string tape_summary(const TapeRecord& record) {
  const NodeClock::Seconds seconds = record.seconds();
  return fmt::format("{} x {} tokens, {}: forward {:.2f} ms, backward {:.2f} ms, {} of values kept", record.sequences,
                     record.seq_len, counted(static_cast<int64_t>(record.nodes.size()), "node"), 1e3 * seconds.forward,
                     1e3 * seconds.backward, bytes_text(static_cast<double>(record.bytes())));
}

std::string tape_text(const TapeRecord& record) {
  const std::vector<LaneRow> rows = lanes_of(record.nodes);
  size_t lanes = 1;
  for (const LaneRow& row : rows) {
    lanes = std::max(lanes, row.below.size());
  }
  size_t widest = 0;
  for (const NodeRecord& node : record.nodes) {
    widest = std::max(widest, node.scope.size());
  }
  std::string text = fmt::format("{}{} of {}, {}\n", tape_mark, record.step, record.model, tape_summary(record));
  text += fmt::format("{:>5}  {:<{}}  {:<22} {:<{}} {:<20} {:>11} {:>11} {:>10} {:>11} {:>10}  {:<16} {}\n", "id", "",
                      2 * lanes - 1, "op", "scope", widest, "shape", "|value|", "|grad|", "forward ms", "backward ms",
                      "bytes", "reads", "called at");
  for (size_t i = 0; i < rows.size(); ++i) {
    const NodeRecord& node = record.nodes[i];
    const std::string gradient = node.gradient_length ? fmt::format("{:.6g}", *node.gradient_length) : "-";
    text +=
        fmt::format("{:>5}  {}  {:<22} {:<{}} {:<20} {:>11.6g} {:>11} {:>10} {:>11} {:>10}  {:<16} {}\n", node.id,
                    lane_text(rows[i], static_cast<int>(lanes)), node.op, node.scope, widest,
                    fmt::format("{}", node.shape), node.value_length, gradient, milliseconds_text(node.seconds.forward),
                    milliseconds_text(node.seconds.backward), node.bytes, operands_text(node), node.called_at);
  }
  return text;
}

}  // namespace minillm
