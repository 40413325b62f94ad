#pragma once
// What a run says at its start and its end.

#include "data/token_file.h"
#include "nn/transformer.h"
#include "optim/adamw.h"
#include "train/summary.h"
#include "train/train_config.h"

#include <string_view>

namespace minillm {

/// Program, threads, data, parameters per module, parameter groups, expected first loss and unigram loss.
void log_banner(const Config& config, const TokenFile& data, const Transformer& model, const AdamW& optimizer);

/// What came out, where it lies, and the next command.
void log_end(const Config& config, const Summary& summary, std::string_view reason);

/// Fills in what describes the program and the machine: version to cpu, peak memory.
void complete_summary(Summary& summary);

}  // namespace minillm
