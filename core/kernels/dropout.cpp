#include "core/kernels/dropout.h"

#include "core/kernels/simd.h"
#include "core/parallel.h"

#include <algorithm>

namespace minillm::kernels {

namespace {

constexpr int64_t elements_per_chunk = 16384;  // a multiple of elements_per_group
constexpr int64_t elements_per_group = 4 * lanes;

// philox(key, counter) of core/rng.cpp for `lanes` counters side by side, as factors for the 4 * lanes elements that
// begin at 4 * counter: 0 or `factor`.
MINILLM_SIMD void draw_factors(RandomKey key, uint64_t counter, uint32_t threshold, float factor, float* factors) {
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  uint32_t x0[lanes];
  uint32_t x1[lanes];
  uint32_t x2[lanes];
  uint32_t x3[lanes];
  for (int lane = 0; lane < lanes; ++lane) {
    const uint64_t lane_counter = counter + static_cast<uint64_t>(lane);
    x0[lane] = static_cast<uint32_t>(lane_counter);
    x1[lane] = static_cast<uint32_t>(lane_counter >> 32);
    x2[lane] = 0;
    x3[lane] = 0;
  }
  for (int round = 0; round < 10; ++round) {
    for (int lane = 0; lane < lanes; ++lane) {
      const uint64_t product0 = uint64_t{0xD2511F53} * x0[lane];
      const uint64_t product1 = uint64_t{0xCD9E8D57} * x2[lane];
      x0[lane] = static_cast<uint32_t>(product1 >> 32) ^ x1[lane] ^ k0;
      x1[lane] = static_cast<uint32_t>(product1);
      x2[lane] = static_cast<uint32_t>(product0 >> 32) ^ x3[lane] ^ k1;
      x3[lane] = static_cast<uint32_t>(product0);
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  for (int lane = 0; lane < lanes; ++lane) {
    factors[4 * lane] = x0[lane] >= threshold ? factor : 0.0F;
    factors[4 * lane + 1] = x1[lane] >= threshold ? factor : 0.0F;
    factors[4 * lane + 2] = x2[lane] >= threshold ? factor : 0.0F;
    factors[4 * lane + 3] = x3[lane] >= threshold ? factor : 0.0F;
  }
}

// A dropped NaN or infinity becomes 0, as in the reference: no 0 * NaN.
MINILLM_SIMD void set_masked(const float* x, const float* factors, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    y[i] = factors[i] == 0.0F ? 0.0F : x[i] * factors[i];
  }
}

MINILLM_SIMD void add_masked(const float* dy, const float* factors, float* dx, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    dx[i] += factors[i] == 0.0F ? 0.0F : dy[i] * factors[i];
  }
}

template <class Apply>
void for_each_group(int64_t N, double p, RandomKey key, Apply apply) {
  const uint32_t threshold = dropout_threshold(p);
  const float factor = static_cast<float>(1.0 / (1.0 - p));
  parallel_for(N, elements_per_chunk, [=](int64_t begin, int64_t end) {
    float factors[elements_per_group];
    for (int64_t i = begin; i < end; i += elements_per_group) {
      draw_factors(key, static_cast<uint64_t>(i / 4), threshold, factor, factors);
      apply(i, factors, std::min(elements_per_group, end - i));
    }
  });
}

}  // namespace

void dropout_forward(const float* x, float* y, int64_t N, double p, RandomKey key) {
  for_each_group(N, p, key, [=](int64_t i, const float* factors, int64_t count) {
    set_masked(x + i, factors, y + i, count);
  });
}

void dropout_backward(const float* dy, float* dx, int64_t N, double p, RandomKey key) {
  for_each_group(N, p, key, [=](int64_t i, const float* factors, int64_t count) {
    add_masked(dy + i, factors, dx + i, count);
  });
}

}  // namespace minillm::kernels
