#pragma once
// A recorded tape as text: a table with the lanes of its values, and a graph for Graphviz.

#include "train/tape_record.h"

#include <string>

namespace minillm {

/// The first words of both.
inline constexpr const char* tape_mark = "Tape of step ";

/// A line a node: id, lanes, op, scope, shape, |value|, |grad|, milliseconds forward and backward, bytes, operands,
/// where it was called.
std::string tape_text(const TapeRecord& record);

/// Graphviz' language: a box a node, in the clusters of its scope, coloured by time; parameters are named in the boxes
/// that read them.
std::string tape_dot(const TapeRecord& record);

/// "16 x 32 tokens, 177 nodes: forward 3.10 ms, backward 5.20 ms, 1.2 MB of values kept"
std::string tape_summary(const TapeRecord& record);

}  // namespace minillm
