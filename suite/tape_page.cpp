#include "suite/tape_page.h"

#include "core/json_object.h"
#include "core/text.h"
#include "core/utf8.h"
#include "suite/page.h"
#include "train/tape_drawing.h"
#include "train/tape_lanes.h"

namespace minillm {

namespace {

/// The lanes whose values come in from the row before, or go on to the one behind.
std::vector<int32_t> lanes_with_values(const std::vector<bool>& marks) {
  std::vector<int32_t> lanes;
  for (size_t lane = 0; lane < marks.size(); ++lane) {
    if (marks[lane]) {
      lanes.push_back(static_cast<int32_t>(lane));
    }
  }
  return lanes;
}

JsonObject node_json(const NodeRecord& node, const LaneRow& row) {
  JsonObject json;
  json.add("op", node.op);
  json.add("scope", node.scope);
  json.add("shape", fmt::format("{}", node.shape));
  json.add("called_at", node.called_at);
  json.add("operands", node.operands);
  json.add("value_length", node.value_length);
  if (node.gradient_length) {
    json.add("gradient_length", *node.gradient_length);
  }
  json.add("bytes", node.bytes);
  json.add("forward_s", node.seconds.forward);
  json.add("backward_s", node.seconds.backward);
  json.add("lane", int64_t{row.lane});
  json.add("from", std::vector<int32_t>(row.from.begin(), row.from.end()));
  json.add("above", lanes_with_values(row.above));
  json.add("below", lanes_with_values(row.below));
  return json;
}

}  // namespace

std::string tape_page(const TapeRecord& record) {
  const std::vector<LaneRow> rows = lanes_of(record.nodes);
  std::vector<JsonObject> nodes;
  for (size_t i = 0; i < rows.size(); ++i) {
    nodes.push_back(node_json(record.nodes[i], rows[i]));
  }
  JsonObject json;
  json.add("summary", tape_summary(record));
  json.add("nodes", nodes);
  const std::string title =
      markup_text(valid_utf8(fmt::format("{}{} of {}", tape_mark, record.step, printable(record.model))));
  return filled_page("tape_page.html", {{"{{TITLE}}", title}, {"{{DATA}}", inside_script(json.text())}});
}

}  // namespace minillm
