#include "optim/optim_config.h"

#include <cmath>
#include <limits>
#include <string_view>

namespace minillm {

namespace {

class Checker {
 public:
  /// value in [low, high], or [low, high) with `open`; NaN fails every comparison and is refused.
  void range(std::string_view key, double value, double low, double high, std::string_view expected,
             bool open = false) {
    const bool below_high = open ? value < high : value <= high;
    if (!(value >= low && below_high)) {
      add(key, fmt::format("{}", value), expected);
    }
  }

  void add(std::string_view key, std::string found, std::string_view expected, std::string hint = {}) {
    problems.push_back({.where = "optim." + std::string(key),
                        .what = "value out of range",
                        .found = std::move(found),
                        .expected = std::string(expected),
                        .hint = std::move(hint)});
  }

  std::vector<Problem> problems;
};

}  // namespace

std::vector<Problem> problems_of(const OptimConfig& config, int64_t steps) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Checker checker;
  checker.range("lr", config.lr, 0, infinity, "a finite number >= 0", true);
  checker.range("min_lr_ratio", config.min_lr_ratio, 0, 1, "a number in [0, 1]");
  checker.range("decay_fraction", config.decay_fraction, 0, 1, "a number in [0, 1]");
  checker.range("weight_decay", config.weight_decay, 0, infinity, "a finite number >= 0", true);
  checker.range("beta1", config.beta1, 0, 1, "a number in [0, 1)", true);
  checker.range("beta2", config.beta2, 0, 1, "a number in [0, 1)", true);
  checker.range("grad_clip", config.grad_clip, 0, infinity, "a finite number >= 0; 0 switches clipping off", true);
  constexpr double smallest =
      static_cast<double>(std::numeric_limits<float>::min());  // less is flushed to 0 where weights are floats
  if (!(config.eps >= smallest && config.eps < infinity)) {
    checker.add("eps", fmt::format("{}", config.eps), fmt::format("a finite number >= {:.3g}", smallest));
  }
  // A run of no steps has no learning rate, so the default warm-up is no obstacle to it.
  if (config.warmup_steps < 0 || (steps > 0 && config.warmup_steps > steps)) {
    checker.add("warmup_steps", fmt::format("{}", config.warmup_steps), fmt::format("0 to train.steps = {}", steps),
                "shorten the warm-up or lengthen the run");
  }
  return checker.problems;
}

}  // namespace minillm
