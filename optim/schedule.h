#pragma once
// The learning rate of each step.

#include "optim/optim_config.h"

#include <cstdint>

namespace minillm {

/// The learning rate of update `step` (from 0) of a run of `steps`:
///   warm-up   lr * (step + 1) / warmup_steps           while step < warmup_steps
///   constant  lr
///   linear    from lr to lr * min_lr_ratio             phase (step - warmup_steps) / (steps - warmup_steps)
///   cosine    half a cosine between the same ends      the same phase
///   wsd       lr, then linear over the last decay_fraction * steps (warm-up, stable, decay)
/// Always in [0, lr]: neither warmup_steps = 0, nor warmup_steps = steps, nor a step past the end divides by zero or
/// leaves the range. An unknown schedule is an Error.
double learning_rate(const OptimConfig& config, int64_t step, int64_t steps);

}  // namespace minillm
