#pragma once
// NodeClock: how long each node of a tape takes, as the tape runs.

#include "autograd/node.h"

#include <chrono>
#include <cstdint>
#include <vector>

namespace minillm {

enum class Pass : uint8_t { forward, backward };

/// Counts wall time by node, for TapeOptions::clock. What lies between two nodes counts for the first: its forward ends
/// where the next node begins.
class NodeClock {
 public:
  struct Seconds {
    double forward = 0;
    double backward = 0;
  };

  /// What follows is this node's.
  void move_to(NodeId node, Pass pass);
  /// What follows is nobody's.
  void stop();

  /// Of node `id`, since the clock was made; 0 for one that did not run.
  Seconds seconds(NodeId id) const;

 private:
  using Clock = std::chrono::steady_clock;

  std::vector<Seconds> spent_;
  double* now_ = nullptr;  // into spent_: what is counted; null: nobody's
  Clock::time_point since_;
};

}  // namespace minillm
