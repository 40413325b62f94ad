#pragma once
// The trained model that a lesson looks into: that of --run, or a small one trained on the spot.

#include "data/token_file.h"
#include "data/tokenizer.h"
#include "experiments/lessons/page.h"
#include "nn/transformer.h"
#include "train/config_file.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace minillm {

struct Subject {
  Config config;
  std::unique_ptr<Transformer> model;
  std::unique_ptr<Tokenizer> tokenizer;  ///< null: the run's tokens were imported
  TokenFile data;

  /// The first `sequences` windows of T tokens of the validation split, in order [sequences, T]; fewer where the split
  /// or the model's context is short.
  std::vector<int32_t> validation(int64_t sequences, int64_t T) const;

  /// The same model as it was before training.
  std::unique_ptr<Transformer> untrained() const;

  /// A token as it is written; of a run without a tokenizer its number.
  std::string word(int32_t id) const;
};

/// Says on the page which model it is.
Subject subject_of(Page& page);

/// What one training on the built-in corpus came to.
struct SmallTraining {
  Subject subject;
  std::vector<double> val_loss;  ///< at the start, then after each quarter of the steps
  double entropy_rate = 0;       ///< of the corpus: no loss can be lower
};

/// Trains a model of `overrides` ("model.ffn=none") above a small config, in seconds, the same bits each time.
/// `fan_in`: the layers' matrices [out, in] start with deviation 1/sqrt(in), which keeps the size of what they read,
/// instead of 0.02.
SmallTraining train_small(const std::vector<std::string>& overrides = {}, bool fan_in = false);

}  // namespace minillm
