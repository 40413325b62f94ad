#include "cli/text_source.h"

#include "core/error.h"
#include "core/parallel.h"
#include "core/text.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>

namespace minillm::cli {

std::vector<OptionSpec> text_options(std::vector<OptionSpec> more) {
  std::vector<OptionSpec> options = {
      {"temperature", "T", "1.0", "0 = always the most likely token; higher is more varied"},
      {"top-k", "K", "0", "draw from the K most likely tokens; 0 = off"},
      {"top-p", "P", "0.9", "draw from the fewest tokens that together exceed P; 1 = off"},
      {"max-tokens", "N", "256", "new tokens at most"},
      {"seed", "S", "", "repeats a text (default: drawn, and printed)"},
      weights_option(),
      {"checkpoint", "best|last|N", "last", "which checkpoint of a run"}};
  std::move(more.begin(), more.end(), std::back_inserter(options));
  return options;
}

OptionSpec weights_option() {
  return {"weights", "TYPE", "float32", "to write with: float32; bf16 or int8, rounded, fewer bytes to read a token"};
}

SamplerOptions sampler_options(const Arguments& arguments) {
  SamplerOptions options;
  options.temperature = arguments.number("temperature");
  options.top_k = arguments.integer("top-k", 0);
  options.top_p = arguments.number("top-p");
  check_sampler_options(options);
  return options;
}

uint64_t seed_of(const Arguments& arguments) {
  if (arguments.given("seed")) {
    return static_cast<uint64_t>(arguments.integer("seed", 0));
  }
  return std::random_device()();
}

std::unique_ptr<DecodingWeights> rounded_weights(const Arguments& arguments, Transformer& model) {
  const std::string& name = arguments.text("weights");
  if (name == "float32") {
    return nullptr;
  }
  if (name != "bf16" && name != "int8") {
    fail_input({.where = "--weights",
                .what = "is no type of weights to decode with",
                .found = printable(name),
                .expected = "float32, bf16 or int8"});
  }
  if (model.parameters().weights().dtype != DType::float32) {
    fail_input({.where = "--weights", .what = "is for models in float32", .found = "train.dtype = \"float64\""});
  }
  const auto type = name == "bf16" ? kernels::DecodingType::bf16 : kernels::DecodingType::int8;
  auto weights = std::make_unique<DecodingWeights>(model.parameters(), type);
  weights->round(model.parameters());
  return weights;
}

LoadedRun load_text_model(const Arguments& arguments) {
  LoadedRun run = load_model(arguments.words().front(), arguments.text("checkpoint"));
  set_num_threads(std::min(run.config.train.threads, usable_cores()));
  if (run.tokenizer == nullptr) {
    fail_input({.where = run.checkpoint,
                .what = "has no tokenizer for text: its tokens or its weights were imported",
                .hint = "a run on text of minillm prepare has one"});
  }
  return run;
}

std::vector<int32_t> prompt_ids(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids = {tokenizer.bos_id()};
  tokenizer.encode(text, ids);
  return ids;
}

}  // namespace minillm::cli
