#pragma once
// The machine's floating-point limit, measured: what a training step's speed is compared with.

namespace minillm {

/// GFLOP/s in float of independent fused multiply-adds (2 operations each) in registers, over num_threads() threads
/// at once, with the widest vectors of widest_instruction_set(): the best of seven probes of about 30 ms. 0 where
/// these are the baseline's, as on other processors than x86-64 with AVX2 and FMA.
double fma_peak_gflops();

}  // namespace minillm
