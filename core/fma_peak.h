#pragma once
// The machine's floating-point limit, measured: what a training step's speed is compared with.

namespace minillm {

/// GFLOP/s in float of independent fused multiply-adds (2 operations each) in registers, over num_threads() threads
/// at once, with the widest vectors the processor has: the best of some tenths of a second. 0 where it is not x86-64.
double fma_peak_gflops();

}  // namespace minillm
