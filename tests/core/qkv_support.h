#pragma once
// What tests of kernels and ops on packed queries, keys and values share.

#include "core/kernels/attention.h"
#include "core/parallel.h"
#include "core/rng.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace minillm {

struct QkvCase {
  std::string name;
  QkvLayout layout;
};

inline std::vector<QkvCase> qkv_cases() {
  return {{"MHA", {.n_heads = 4, .n_kv_heads = 4, .head_dim = 8}},
          {"GQA", {.n_heads = 4, .n_kv_heads = 2, .head_dim = 32}},
          {"wide heads", {.n_heads = 2, .n_kv_heads = 2, .head_dim = 72}},
          {"MQA", {.n_heads = 3, .n_kv_heads = 1, .head_dim = 20}},
          {"gated", {.n_heads = 2, .n_kv_heads = 1, .head_dim = 16, .gated = true}}};
}

/// Normal numbers from a stream of their own.
inline std::vector<double> random_values(int64_t count, const char* name, double scale = 1) {
  RandomStream stream(random_key(7, "test", name));
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) {
    value = scale * stream.normal();
  }
  return values;
}

inline std::vector<float> to_float(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

/// Rounded to float: what a double kernel reads to be comparable with a float one.
inline std::vector<double> rounded(const std::vector<double>& values) {
  const std::vector<float> floats = to_float(values);
  return {floats.begin(), floats.end()};
}

/// max |found - expected| / max |expected|; infinite when a value is not finite.
template <class Found>
double relative_error(const std::vector<Found>& found, const std::vector<double>& expected) {
  double largest = 0;
  double difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double value = static_cast<double>(found[i]);
    if (!std::isfinite(value)) {
      return HUGE_VAL;
    }
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(value - expected[i]));
  }
  return difference / std::max(largest, 1e-300);
}

/// Sets the number of threads for a scope.
class Threads {
 public:
  explicit Threads(int threads) : before_(num_threads()) { set_num_threads(threads); }
  ~Threads() { set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace minillm
