#include "train/tape_lanes.h"

#include <algorithm>
#include <iterator>

namespace minillm {

namespace {

constexpr NodeId nobody = -1;

/// The last node that reads each value; nobody's too.
std::vector<NodeId> last_readers(const std::vector<NodeRecord>& nodes) {
  std::vector<NodeId> last(nodes.size(), nobody);
  for (const NodeRecord& node : nodes) {
    for (const NodeId operand : node.operands) {
      last[static_cast<size_t>(operand)] = node.id;
    }
  }
  return last;
}

std::vector<bool> taken(const std::vector<NodeId>& lanes) {
  std::vector<bool> marks;
  std::transform(lanes.begin(), lanes.end(), std::back_inserter(marks), [](NodeId id) { return id != nobody; });
  return marks;
}

/// The lowest lane without a value; a new one where all have one.
int free_lane(std::vector<NodeId>& lanes) {
  const auto place = std::find(lanes.begin(), lanes.end(), nobody);
  const auto lane = static_cast<int>(place - lanes.begin());
  if (place == lanes.end()) {
    lanes.push_back(nobody);
  }
  return lane;
}

bool at(const std::vector<bool>& marks, int lane) {
  return static_cast<size_t>(lane) < marks.size() && marks[static_cast<size_t>(lane)];
}

/// Of a lane that an operand comes down: whether it goes on, and to which sides the line to the node leaves.
const char* joint(bool goes_on, bool left, bool right) {
  if (left && right) {
    return goes_on ? "┼" : "┴";
  }
  if (left) {
    return goes_on ? "┤" : "┘";
  }
  return goes_on ? "├" : "└";
}

}  // namespace

std::vector<LaneRow> lanes_of(const std::vector<NodeRecord>& nodes) {
  const std::vector<NodeId> last = last_readers(nodes);
  std::vector<NodeId> lanes;  // whose value runs in each
  std::vector<LaneRow> rows;
  for (const NodeRecord& node : nodes) {
    LaneRow row;
    row.above = taken(lanes);
    if (!node.is_leaf()) {
      for (size_t lane = 0; lane < lanes.size(); ++lane) {
        const NodeId value = lanes[lane];
        if (std::find(node.operands.begin(), node.operands.end(), value) == node.operands.end()) {
          continue;
        }
        row.from.push_back(static_cast<int>(lane));
        if (last[static_cast<size_t>(value)] == node.id) {
          lanes[lane] = nobody;
          row.lane = row.lane < 0 ? static_cast<int>(lane) : row.lane;
        }
      }
      row.lane = row.lane < 0 ? free_lane(lanes) : row.lane;
      const bool is_read = last[static_cast<size_t>(node.id)] != nobody;
      lanes[static_cast<size_t>(row.lane)] = is_read ? node.id : nobody;
    }
    row.below = taken(lanes);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string lane_text(const LaneRow& row, int lanes) {
  int first = row.lane;
  int last = row.lane;
  for (const int lane : row.from) {
    first = std::min(first, lane);
    last = std::max(last, lane);
  }
  std::string text;
  for (int lane = 0; lane < lanes; ++lane) {
    const bool is_read = std::find(row.from.begin(), row.from.end(), lane) != row.from.end();
    const bool on_line = row.lane >= 0 && lane >= first && lane <= last;
    if (lane == row.lane) {
      text += "●";
    } else if (is_read) {
      text += joint(at(row.below, lane), lane > first, lane < last);
    } else if (at(row.above, lane)) {
      text += "│";
    } else {
      text += on_line ? "─" : " ";
    }
    if (lane + 1 < lanes) {
      text += on_line && lane < last ? "─" : " ";
    }
  }
  return text;
}

}  // namespace minillm
