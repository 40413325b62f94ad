#pragma once
// What a run says at its start and its end.

#include "data/token_file.h"
#include "nn/transformer.h"
#include "optim/adamw.h"
#include "train/summary.h"
#include "train/train_config.h"

#include <string>
#include <string_view>

namespace minillm {

/// Program, threads, data, parameters per module, parameter groups, expected first loss and unigram loss.
void log_banner(const Config& config, const TokenFile& data, const Transformer& model, const AdamW& optimizer);

/// The parameters of each kind of part and their share, as a table.
std::string parameter_table(const Transformer& model);

/// What came out, with its curves, where it lies, and the next command: text when there is a tokenizer, else the loss.
void log_end(const Config& config, const TokenFile& data, const Metrics& metrics, const Summary& summary,
             std::string_view reason);

/// Fills in what describes the program and the machine: version to cpu, peak memory.
void complete_summary(Summary& summary);

}  // namespace minillm
