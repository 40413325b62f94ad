#pragma once
// How fast this machine reads memory: what a decoder, which reads all weights for each token, is compared with.

#include <cstddef>

namespace minillm {

/// GB/s (1e9 bytes) of summing `bytes` of floats over num_threads() threads, each its own part, again and again: the
/// best of seven probes of about 30 ms. A size that fits a cache is read from the cache, as weights of that size are.
double read_gigabytes_per_s(size_t bytes);

}  // namespace minillm
