#pragma once
// The targets of the two losses: one class a row, negative = not counted. Included by autograd/ops/*.cpp only.

#include "autograd/op_support.h"

#include <algorithm>

namespace minillm {

/// Throws the op's error unless there is one target a row and each is below V.
inline void check_targets(const char* op, const Tape& tape, std::span<const int32_t> targets, int64_t R, int64_t V,
                          Here here) {
  check_op(static_cast<int64_t>(targets.size()) == R, op, tape, here, "{} rows need as many targets; found {}", R,
           targets.size());
  for (size_t r = 0; r < targets.size(); ++r) {
    check_op(targets[r] < V, op, tape, here, "target {} at position {} is not below the vocabulary's {}", targets[r],
             r, V);
  }
}

/// A copy that lives until the tape is cleared.
inline Tensor save_targets(Tape& tape, std::span<const int32_t> targets) {
  const Tensor saved = tape.allocate({static_cast<int64_t>(targets.size())}, DType::int32);
  std::copy(targets.begin(), targets.end(), saved.as<int32_t>());
  return saved;
}

inline int64_t count_targets(std::span<const int32_t> targets) {
  return std::count_if(targets.begin(), targets.end(), [](int32_t target) { return target >= 0; });
}

/// sum / counted, and 0 when nothing is counted.
inline double mean_over(double sum, int64_t counted) {
  return counted > 0 ? sum / static_cast<double>(counted) : 0.0;
}

}  // namespace minillm
