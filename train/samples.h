#pragma once
// samples.jsonl: what the model writes as it learns. The same prompt and draws every time, so that samples compare.

#include "data/token_file.h"
#include "data/tokenizer.h"
#include "nn/transformer.h"
#include "train/train_config.h"

#include <cstdint>
#include <memory>
#include <string>

namespace minillm {

class SampleWriter {
 public:
  /// Keeps the first `keep_bytes` of folder/samples.jsonl (0 for a new run). Without a tokenizer in the data (imported
  /// tokens) samples are ids.
  SampleWriter(std::string folder, int64_t keep_bytes, const TokenFile& data);

  /// Appends {"step", "text"} (or "token_ids") after `updates` updates and shows it.
  void write(int64_t updates, const Transformer& model, const Config& config);

  /// The file's size, flushed to the disk: what a checkpoint stores.
  int64_t sync();

 private:
  std::string path_;
  std::unique_ptr<Tokenizer> tokenizer_;  // null: imported tokens
};

}  // namespace minillm
