// minillm generate: text from a trained model.

#include "cli/command.h"
#include "core/json_object.h"
#include "core/log.h"
#include "core/parallel.h"
#include "core/utf8.h"
#include "generate/generator.h"
#include "generate/utf8_stream.h"
#include "train/loaded_run.h"
#include "train/trainer.h"

#include <algorithm>
#include <cstdio>
#include <random>

namespace minillm::cli {

namespace {

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

double rate(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

void print_json(const std::vector<int32_t>& prompt, const Generation& generation, const std::string& text,
                uint64_t seed) {
  const int64_t decoded =
      std::max<int64_t>(0, static_cast<int64_t>(generation.tokens.size()) - 1);  // the first: prefill
  JsonObject json;
  json.add("text", text);
  json.add("prompt_token_ids", prompt);
  json.add("token_ids", generation.tokens);
  json.add("seed", seed);
  json.add("stopped_by", generation.stopped_by);
  json.add("tokens_per_s", rate(decoded, generation.decode_seconds));
  json.add("prefill_tokens_per_s", rate(static_cast<int64_t>(prompt.size()), generation.prefill_seconds));
  std::printf("%s\n", json.text().c_str());
}

int run_generate(const Arguments& arguments) {
  const SamplerOptions options = sampler_options(arguments);
  const uint64_t seed = seed_of(arguments);
  const int64_t max_tokens = arguments.integer("max-tokens", 0);
  const LoadedRun run = load_run(arguments.words().front(), arguments.text("checkpoint"));
  set_num_threads(std::min(run.config.train.threads, usable_cores()));
  if (run.tokenizer == nullptr) {
    fail_input({.where = run.checkpoint,
                .what = "has no tokenizer for text: its tokens or its weights were imported",
                .hint = "a run on text of minillm prepare has one"});
  }
  std::vector<int32_t> prompt = {run.tokenizer->bos_id()};
  run.tokenizer->encode(arguments.text("prompt"), prompt);
  check_prompt(*run.model, prompt);  // before the prompt is printed
  const TokenRules rules = rules_of(*run.tokenizer);
  Sampler sampler(options, seed);
  const bool json = arguments.given("json");
  CharacterStream stream;
  const auto print = [&](int32_t token) {
    std::fputs(stream.feed(run.tokenizer->bytes(token)).c_str(), stdout);
    std::fflush(stdout);
  };
  if (!json) {
    log_info("seed {}", seed);
    std::fputs(valid_utf8(arguments.text("prompt")).c_str(), stdout);
  }
  const Generation generation = generate(*run.model, prompt, max_tokens, sampler, rules, tape_options(run.config.train),
                                         json ? std::function<void(int32_t)>() : std::function<void(int32_t)>(print));
  if (json) {
    print_json(prompt, generation, valid_utf8(run.tokenizer->decode(generation.tokens)), seed);
    return 0;
  }
  std::printf("%s\n", stream.flush().c_str());
  if (generation.stopped_by == "context") {
    log_info("the context of {} tokens is full", run.config.model.max_seq_len);
  }
  return 0;
}

}  // namespace

Command generate_command() {
  return {{.name = "generate",
           .words = "RUN",
           .summary = "text from a trained model",
           .min_words = 1,
           .max_words = 1,
           .options = {{"prompt", "TEXT", "", "what the text begins with", true},
                       {"temperature", "T", "1.0", "0 = always the most likely token; higher is more varied"},
                       {"top-k", "K", "0", "draw from the K most likely tokens; 0 = off"},
                       {"top-p", "P", "0.9", "draw from the fewest tokens that together exceed P; 1 = off"},
                       {"max-tokens", "N", "256", "new tokens at most"},
                       {"seed", "S", "", "repeats a text (default: drawn, and printed)"},
                       {"checkpoint", "best|last|N", "last", "which checkpoint"},
                       {"json", "", "", "one JSON object on standard output"}},
           .examples = {"minillm generate runs/quickstart --prompt \"It was\" --temperature 0.8 --seed 1"}},
          run_generate};
}

}  // namespace minillm::cli
