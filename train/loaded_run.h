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
  std::unique_ptr<Tokenizer> tokenizer;  ///< null: the run's tokens or its weights were imported
  std::string tokenizer_sha256;          ///< "" without one
};

/// Opens `run` (a folder or a checkpoint file) at checkpoint `which`: "last", "best" or a number of steps.
LoadedRun load_run(const std::string& run, const std::string& which);

/// The same of what text is to come from: a run, or another tool's model (formats/foreign_model.h), whose weights are
/// float32 here.
LoadedRun load_model(const std::string& path, const std::string& which);

/// Opens the data file `path`; "": the run's own. Throws an input Error unless it was made with the run's tokenizer and
/// its ids are within the run's vocabulary.
TokenFile open_data_for(const LoadedRun& run, const std::string& path);

}  // namespace minillm
