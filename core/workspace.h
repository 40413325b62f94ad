#pragma once
// Memory of a kernel between calls: grows when more is asked for and is kept, so that nothing comes from the heap in
// the steady state. Kernels hold one a thread (`thread_local Workspace packed;`).

#include "core/memory.h"

#include <cstdint>

namespace minillm {

class Workspace {
 public:
  /// Room for `count` floats on a 64-byte boundary; what an earlier call got is lost.
  float* take(int64_t count) {
    if (count > size_) {
      memory_.reset(allocate_aligned(static_cast<size_t>(count) * sizeof(float)));
      size_ = count;
    }
    return static_cast<float*>(memory_.get());
  }

 private:
  AlignedMemory memory_;
  int64_t size_ = 0;
};

}  // namespace minillm
