#include "optim/schedule.h"

#include "core/error.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace minillm {

namespace {

/// 0 at step `begin`, 1 at `end` and after. A decay without length has no step of its own: whatever follows is past it.
double phase(double begin, double end, double step) {
  if (step >= end) {
    return 1;
  }
  return std::max(0.0, (step - begin) / (end - begin));
}

}  // namespace

double learning_rate(const OptimConfig& config, int64_t step, int64_t steps) {
  if (step < config.warmup_steps) {
    return config.lr * (static_cast<double>(step + 1) / static_cast<double>(config.warmup_steps));
  }
  const double begin = static_cast<double>(config.warmup_steps);
  const double end = static_cast<double>(steps);
  const double now = static_cast<double>(step);
  const double lowest = config.lr * config.min_lr_ratio;
  if (config.schedule == "constant") {
    return config.lr;
  }
  if (config.schedule == "linear") {
    return config.lr - (config.lr - lowest) * phase(begin, end, now);
  }
  if (config.schedule == "cosine") {
    const double height = 0.5 * (1 + std::cos(std::numbers::pi * phase(begin, end, now)));
    return lowest + (config.lr - lowest) * height;
  }
  if (config.schedule == "wsd") {
    const double decay_begin = std::max(begin, end * (1 - config.decay_fraction));
    return config.lr - (config.lr - lowest) * phase(decay_begin, end, now);
  }
  fail_input({.where = "optim.schedule",
              .what = "unknown schedule",
              .found = config.schedule,
              .expected = "cosine, linear, constant or wsd"});
}

}  // namespace minillm
