#pragma once
// What the commands that read and write text have in common: the options of drawing, the model with its tokenizer.

#include "autograd/decoding_weights.h"
#include "cli/options.h"
#include "generate/sampler.h"
#include "train/loaded_run.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace minillm::cli {

/// --temperature, --top-k, --top-p, --max-tokens, --seed, --weights and --checkpoint, `more` behind them.
std::vector<OptionSpec> text_options(std::vector<OptionSpec> more);

SamplerOptions sampler_options(const Arguments& arguments);

/// --seed, or one that is drawn.
uint64_t seed_of(const Arguments& arguments);

/// The model's matrices rounded as --weights asks for, and the model's own values with them; null: float32, as they
/// are.
std::unique_ptr<DecodingWeights> rounded_weights(const Arguments& arguments, Transformer& model);
OptionSpec weights_option();

/// The run or model that the first word names, on as many threads as its config and the machine allow. Throws an input
/// Error when it has no tokenizer.
LoadedRun load_text_model(const Arguments& arguments);

/// `<s>` and the text's ids: what a model reads.
std::vector<int32_t> prompt_ids(const Tokenizer& tokenizer, std::string_view text);

}  // namespace minillm::cli
