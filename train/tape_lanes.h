#pragma once
// How a tape is drawn: a row a node, in order, and beside the rows lanes in which values run down to who reads them
// last. A residual stream is one long lane, what branches off it the lanes beside it.

#include "train/tape_record.h"

#include <string>
#include <vector>

namespace minillm {

/// The lanes beside one row.
struct LaneRow {
  int lane = -1;            ///< the node's own; -1: a leaf, which is not drawn
  std::vector<int> from;    ///< of the operands, leaves apart: ascending, each once
  std::vector<bool> above;  ///< by lane: a value comes in from the row before
  std::vector<bool> below;  ///< by lane: a value goes on to the row behind
};

/// A row for each node. A node takes the lowest lane that an operand leaves, as its last reader; where none does, the
/// lowest free one.
std::vector<LaneRow> lanes_of(const std::vector<NodeRecord>& nodes);

/// The row in box-drawing characters, 2 * lanes - 1 of them: "│ ├─●". A value that passes under a line is "│" in it.
std::string lane_text(const LaneRow& row, int lanes);

}  // namespace minillm
