// minillm generate: text from a trained model.

#include "cli/command.h"
#include "cli/text_source.h"
#include "core/error.h"
#include "core/json_object.h"
#include "core/log.h"
#include "core/utf8.h"
#include "data/file_descriptor.h"
#include "generate/generator.h"
#include "generate/utf8_stream.h"
#include "train/trainer.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <sstream>

namespace minillm::cli {

namespace {

double rate(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

void print_json(const std::vector<int32_t>& prompt, const Generation& generation, const Tokenizer& tokenizer,
                uint64_t seed) {
  const int64_t decoded =
      std::max<int64_t>(0, static_cast<int64_t>(generation.tokens.size()) - 1);  // the first: prefill
  JsonObject json;
  json.add("text", valid_utf8(tokenizer.decode(generation.tokens)));
  json.add("prompt_token_ids", prompt);
  json.add("token_ids", generation.tokens);
  json.add("seed", seed);
  json.add("stopped_by", generation.stopped_by);
  json.add("tokens_per_s", rate(decoded, generation.decode_seconds));
  json.add("prefill_tokens_per_s", rate(static_cast<int64_t>(prompt.size()), generation.prefill_seconds));
  std::printf("%s\n", json.text().c_str());
}

/// The lines of a file; what stands behind the last line end is one when there is something.
std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream text(read_bytes(path));
  for (std::string line; std::getline(text, line);) {
    lines.push_back(line);
  }
  if (lines.empty()) {
    fail_input({.where = path, .what = "holds no prompt", .expected = "a prompt a line"});
  }
  return lines;
}

/// What the ways to generate share.
struct Request {
  const LoadedRun& run;
  SamplerOptions sampling;
  uint64_t seed;
  int64_t max_tokens;
  TapeOptions tape;
  bool json;
};

/// Shows the text as it is written.
void generate_one(const Request& request, const std::string& text) {
  const Tokenizer& tokenizer = *request.run.tokenizer;
  const std::vector<int32_t> prompt = prompt_ids(tokenizer, text);
  check_prompt(*request.run.model, prompt);  // before the prompt is printed
  Sampler sampler(request.sampling, request.seed);
  CharacterStream stream;
  const auto print = [&](int32_t token) {
    std::fputs(stream.feed(tokenizer.bytes(token)).c_str(), stdout);
    std::fflush(stdout);
  };
  if (!request.json) {
    log_info("seed {}", request.seed);
    std::fputs(valid_utf8(text).c_str(), stdout);
  }
  const auto on_token = request.json ? std::function<void(int32_t)>() : std::function<void(int32_t)>(print);
  const Generation generation =
      generate(*request.run.model, prompt, request.max_tokens, sampler, rules_of(tokenizer), request.tape, on_token);
  if (request.json) {
    print_json(prompt, generation, tokenizer, request.seed);
    return;
  }
  std::printf("%s\n", stream.flush().c_str());
  if (generation.stopped_by == "context") {
    log_info("the context of {} tokens is full", request.run.config.model.max_seq_len);
  }
}

/// Line i of the file with seed + i, as it would be by itself.
void generate_all(const Request& request, const std::string& path) {
  const Tokenizer& tokenizer = *request.run.tokenizer;
  const std::vector<std::string> texts = lines_of(path);
  std::vector<std::vector<int32_t>> prompts;
  std::vector<Sampler> samplers;
  for (const std::string& text : texts) {
    prompts.push_back(prompt_ids(tokenizer, text));
    samplers.emplace_back(request.sampling, request.seed + samplers.size());
  }
  const std::vector<Generation> generations =
      generate_batch(*request.run.model, prompts, request.max_tokens, samplers, rules_of(tokenizer), request.tape);
  if (!request.json) {
    log_info("seeds {} to {}", request.seed, request.seed + texts.size() - 1);
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    if (request.json) {
      print_json(prompts[i], generations[i], tokenizer, request.seed + i);
    } else {
      std::printf("%s%s\n", valid_utf8(texts[i]).c_str(), valid_utf8(tokenizer.decode(generations[i].tokens)).c_str());
    }
  }
}

int run_generate(const Arguments& arguments) {
  if (arguments.given("prompts") && arguments.given("prompt")) {
    fail_input({.where = "--prompts", .what = "stands beside --prompt", .expected = "one of them"});
  }
  const SamplerOptions sampling = sampler_options(arguments);
  const uint64_t seed = seed_of(arguments);
  const int64_t max_tokens = arguments.integer("max-tokens", 0);
  const LoadedRun run = load_text_model(arguments);
  const std::unique_ptr<DecodingWeights> rounded = rounded_weights(arguments, *run.model);
  TapeOptions tape = tape_options(run.config.train);
  tape.decoding = rounded.get();
  const Request request = {run, sampling, seed, max_tokens, tape, arguments.given("json")};
  if (arguments.given("prompts")) {
    generate_all(request, arguments.text("prompts"));
  } else {
    generate_one(request, arguments.text("prompt"));
  }
  return 0;
}

}  // namespace

Command generate_command() {
  return {{.name = "generate",
           .words = "RUN|MODEL",
           .summary = "text from a trained model",
           .note = "MODEL is another tool's file or folder, as minillm import reads it.",
           .min_words = 1,
           .max_words = 1,
           .options = text_options({{"prompt", "TEXT", "", "what the text begins with", true},
                                    {"prompts", "FILE", "", "instead: a prompt a line, written side by side"},
                                    {"json", "", "", "a JSON object on standard output, one a prompt"}}),
           .examples = {"minillm generate runs/quickstart --prompt \"It was\" --temperature 0.8 --seed 1"}},
          run_generate};
}

}  // namespace minillm::cli
