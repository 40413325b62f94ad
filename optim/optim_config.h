#pragma once
// The [optim] section of a config.

#include "core/error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace minillm {

struct OptimConfig {
  double lr = 1e-3;                 ///< peak learning rate
  double min_lr_ratio = 0.1;        ///< what the schedule ends at / lr; the last step is one before it
  int64_t warmup_steps = 100;       ///< updates in which lr grows linearly from lr / warmup_steps
  std::string schedule = "cosine";  ///< of lr after the warm-up: cosine, linear, constant, wsd
  double decay_fraction = 0.2;      ///< wsd: the share of the steps that decays
  double weight_decay = 0.1;        ///< decoupled: p *= 1 - lr * weight_decay
  bool decay_norms = false;         ///< norm gains decay too
  double beta1 = 0.9;               ///< decay of the mean of gradients
  double beta2 = 0.95;              ///< decay of the mean of their squares
  double eps = 1e-8;                ///< added to the root of the second mean
  double grad_clip = 1.0;           ///< largest global gradient norm; 0: off
};

/// What is wrong with a configuration for a run of `steps` updates, each with its key ("optim.lr") as `where`; empty
/// when nothing is. lr = 0 is allowed: the weights stay as they are.
std::vector<Problem> problems_of(const OptimConfig& config, int64_t steps);

}  // namespace minillm
