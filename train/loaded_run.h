#pragma once
// A trained model opened for use: what eval and generate start from.

#include "data/token_file.h"
#include "data/tokenizer.h"
#include "nn/transformer.h"
#include "train/config_file.h"

#include <memory>
#include <string>

namespace minillm {

struct LoadedRun {
  Config config;
  std::string checkpoint;                ///< the file the weights come from
  int64_t step = 0;                      ///< updates they have seen
  std::unique_ptr<Transformer> model;    ///< weights only, no gradients
  std::unique_ptr<Tokenizer> tokenizer;  ///< null: the run was trained on imported tokens
  std::string tokenizer_sha256;          ///< "" without one
};

/// Opens `run` (a folder or a checkpoint file) at checkpoint `which`: "last", "best" or a number of steps.
LoadedRun load_run(const std::string& run, const std::string& which);

/// Throws an input Error unless `data` was made with the run's tokenizer and the model knows all its ids.
void check_fits_model(const LoadedRun& run, const TokenFile& data);

}  // namespace minillm
