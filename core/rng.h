#pragma once
// Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
// Draw i of a stream is a pure function of (key, i): no state to save, any thread may compute any draw.

#include <array>
#include <cstdint>
#include <string_view>

namespace minillm {

/// Names a stream. Made from (seed, purpose, name), so adding a parameter or a part never moves another's stream.
using RandomKey = uint64_t;

RandomKey random_key(uint64_t seed, std::string_view purpose, std::string_view name = "");

/// A key derived from another and a number (step, micro-batch): one stream each.
RandomKey random_key(RandomKey parent, uint64_t index);

/// Philox4x32-10: four 32-bit words for a 128-bit counter (high, low) under a 64-bit key.
std::array<uint32_t, 4> philox(RandomKey key, uint64_t counter_low, uint64_t counter_high = 0);

/// Draws a stream in order. Two streams with different keys are independent.
class RandomStream {
 public:
  explicit RandomStream(RandomKey key) : key_(key) {}

  uint64_t next_u64();
  double uniform();                                 ///< in [0, 1), 53 bits
  void skip(uint64_t draws) { counter_ += draws; }  ///< before the first number: as if so many had been drawn
  double normal();                                  ///< mean 0, variance 1 (Box-Muller in double)
  uint64_t below(uint64_t bound);                   ///< in [0, bound), unbiased; bound >= 1

 private:
  RandomKey key_;
  uint64_t counter_ = 0;
  double spare_normal_ = 0;
  bool has_spare_ = false;
};

/// A keyed permutation of [0, size): a Feistel network over the next power of four, walked until inside (cycle
/// walking). Needs no memory, so a shuffled epoch costs nothing and its cursor is one integer.
class Permutation {
 public:
  Permutation(RandomKey key, uint64_t size);
  uint64_t operator()(uint64_t index) const;

 private:
  uint64_t encrypt(uint64_t value) const;

  RandomKey key_;
  uint64_t size_;
  int half_bits_;
};

}  // namespace minillm
