#pragma once
// samples.jsonl: what the model writes as it learns, from the same draws every time, so that samples compare.

#include "data/token_file.h"
#include "data/tokenizer.h"
#include "nn/transformer.h"
#include "train/line_log.h"
#include "train/train_config.h"

#include <cstdint>
#include <memory>
#include <string>

namespace minillm {

class SampleWriter {
 public:
  /// Keeps the first `keep_bytes` of `path` (0 for a new run). Imported tokens bring no tokenizer: nothing is written.
  SampleWriter(std::string path, int64_t keep_bytes, const TokenFile& data);

  /// Appends {"step", "text"} after `updates` updates and shows the text.
  void write(int64_t updates, const Transformer& model, const Config& config);

  /// The file's size, flushed to the disk: what a checkpoint stores.
  int64_t sync() { return log_.sync(); }

 private:
  LineLog log_;
  std::unique_ptr<Tokenizer> tokenizer_;  // null: imported tokens
};

}  // namespace minillm
