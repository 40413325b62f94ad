#pragma once
// The [train] and [run] sections, and the whole of a config.

#include "data/data_config.h"
#include "nn/model_config.h"
#include "optim/optim_config.h"

#include <cstdint>
#include <string>

namespace minillm {

struct TrainConfig {
  int64_t steps = 1000;          ///< optimizer updates
  int64_t batch_size = 16;       ///< sequences per optimizer step
  int64_t micro_batch_size = 0;  ///< sequences per forward/backward; derived: batch_size
  uint64_t seed = 1337;
  int64_t eval_every = 50;         ///< updates; 0 = never
  int64_t eval_tokens = 65536;     ///< tokens of /val an evaluation reads
  int64_t checkpoint_every = 500;  ///< updates; 0 = only at the end and at a signal
  int64_t keep_checkpoints = 2;
  int64_t sample_every = 0;        ///< updates; 0 = never
  double max_minutes = 0;          ///< 0 = no limit
  int threads = 0;                 ///< 0 = the usable cores
  std::string dtype = "float32";   ///< float32, float64
  std::string kernels = "fast";    ///< fast, reference
  std::string ops = "fused";       ///< fused, composed
  std::string recompute = "none";  ///< none
};

struct RunConfig {
  std::string name;  ///< derived: the config file's stem
  std::string out;   ///< derived: runs/<name>
};

struct Config {
  ModelConfig model;
  DataConfig data;
  OptimConfig optim;
  TrainConfig train;
  RunConfig run;
};

}  // namespace minillm
