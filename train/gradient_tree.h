#pragma once
// Sums the gradients of a step's micro-batches by a fixed binary tree over their index.

#include "core/tensor.h"

#include <vector>

namespace minillm {

/// A binary counter of partial sums. Micro-batch i is a leaf; ((0+1)+(2+3))+... is the same sum whoever computes which
/// leaf, so one process and several give the same bits. One micro-batch costs nothing; n need log2(n) more buffers.
class GradientTree {
 public:
  /// Adds the next micro-batch, whose flat gradient is in `gradient`. `gradient` may be overwritten by the caller
  /// after.
  void add(const Tensor& gradient);

  /// Writes the sum of all micro-batches since the last `finish` into `gradient`.
  void finish(const Tensor& gradient);

 private:
  /// partials_[level] holds the sum of 2^level micro-batches when bit `level` of count_ is set.
  std::vector<Buffer> partials_;
  uint64_t count_ = 0;
};

}  // namespace minillm
