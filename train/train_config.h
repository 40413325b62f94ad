#pragma once
// The [train] and [run] sections, and the whole of a config.

#include "data/data_config.h"
#include "nn/model_config.h"
#include "nn/release.h"
#include "optim/optim_config.h"

#include <cstdint>
#include <string>

namespace minillm {

constexpr int most_threads = 1024;

struct TrainConfig {
  int64_t steps = 1000;            ///< optimizer updates
  int64_t batch_size = 16;         ///< sequences per optimizer step
  int64_t micro_batch_size = 0;    ///< sequences per forward/backward; derived: batch_size
  uint64_t seed = 1337;            ///< of weights, order of windows, dropout and samples
  int64_t eval_every = 50;         ///< updates between evaluations, the last step has one too; 0: none at all
  int64_t eval_tokens = 65536;     ///< tokens of /val that an evaluation reads, in whole windows
  int64_t checkpoint_every = 500;  ///< updates between checkpoints; 0: only at the end and at a signal
  int64_t keep_checkpoints = 2;    ///< the newest that stay; best.h5 is apart
  int64_t sample_every = 0;        ///< updates between samples; 0: none
  double max_minutes = 0;          ///< of one session, then the run saves and ends; 0: no limit
  int threads = 0;                 ///< changes speed, not results; 0: the usable cores
  std::string dtype = "float32";   ///< float64 runs everything in double on the reference kernels: float32, float64
  std::string kernels = "fast";    ///< reference: plain loops, to read and compare with; train.threads = 1 for one
                                   ///< thread: fast, reference
  std::string ops = "fused";       ///< composed: every fused op built from primitives: fused, composed
  std::string recompute = "none";  ///< activations that backward computes again: none
};

struct RunConfig {
  std::string name;     ///< derived: the config file's name without .toml
  std::string out;      ///< the run's folder; derived: runs/<name>
  std::string silence;  ///< lints not to be told: "E12, E20"; those that are errors stay
};

struct Config {
  ModelConfig model;
  DataConfig data;
  OptimConfig optim;
  TrainConfig train;
  RunConfig run;
  ReleaseConfig release;

  /// Of released weights, and of what a decoder keeps of past tokens.
  const std::string& stored_dtype() const { return release.dtype.empty() ? train.dtype : release.dtype; }
};

}  // namespace minillm
