#pragma once
// A small model and a batch for it, where a test needs some model and not a certain one.

#include "core/batch.h"
#include "nn/model_config.h"

#include <cstdint>

namespace minillm {

/// Two blocks of four heads, d_ff half as wide again as d_model, everything else as in the baseline; not derived yet.
inline ModelConfig small_model(int64_t vocab_size, int64_t d_model) {
  ModelConfig config;
  config.vocab_size = vocab_size;
  config.d_model = d_model;
  config.n_layers = 2;
  config.n_heads = 4;
  config.d_ff = d_model * 3 / 2;
  return config;
}

/// Two sequences of seq_len ids that walk through the vocabulary in steps of seven; a target is the id that follows.
inline Batch small_batch(int64_t seq_len, int64_t vocab_size) {
  Batch batch;
  batch.batch_size = 2;
  batch.seq_len = seq_len;
  for (int64_t i = 0; i < batch.tokens(); ++i) {
    batch.inputs.push_back(static_cast<int32_t>(i * 7 % vocab_size));
    batch.targets.push_back(static_cast<int32_t>((i + 1) * 7 % vocab_size));
  }
  return batch;
}

}  // namespace minillm
