// minillm inspect: what a trained model does with one text, layer by layer.

#include "cli/command.h"
#include "cli/inspect_text.h"
#include "cli/text_source.h"
#include "core/error.h"
#include "core/log.h"
#include "suite/inspect_page.h"
#include "train/memory_estimate.h"

#include <cstdio>

namespace minillm::cli {

namespace {

void check_length(const LoadedRun& run, int64_t tokens) {
  const int64_t limit = run.config.model.max_seq_len;
  if (tokens > limit) {
    fail_input({.where = "--text",
                .what = "does not fit the model's context",
                .found = fmt::format("{} tokens, <s> among them", tokens),
                .expected = fmt::format("1 to {} (model.max_seq_len)", limit),
                .hint = "a shorter text"});
  }
  check_look_fits(*run.model, run.config, tokens, run.config.model.causal, "--text");
}

InspectedText text_of(const LoadedRun& run, const Arguments& arguments) {
  InspectedText text{.model = arguments.words().front(), .checkpoint = run.checkpoint};
  text.token_ids = prompt_ids(*run.tokenizer, arguments.text("text"));
  text.causal = run.config.model.causal;
  return text;
}

int run_inspect(const Arguments& arguments) {
  const std::string& page = arguments.text("html");
  const bool wants_page = arguments.given("html");
  if (wants_page) {
    check_inspection_page(page);  // before the work
  }
  const LoadedRun run = load_text_model(arguments);
  InspectedText text = text_of(run, arguments);
  const auto tokens = static_cast<int64_t>(text.token_ids.size());
  check_length(run, tokens);
  for (const int32_t id : text.token_ids) {
    text.tokens.push_back(token_label(*run.tokenizer, id));
  }
  const int64_t map_tokens = wants_page ? tokens_for_maps(run.config.model, tokens) : 0;
  const Inspection inspection = inspect(*run.model, text.token_ids, map_tokens);
  if (wants_page) {
    write_inspection_page(page, text, inspection);
  }
  if (arguments.given("json")) {
    std::printf("%s\n", inspection_json(text, inspection).text().c_str());
  } else {
    fmt::print("{}: {}", text.checkpoint, inspection_text(inspection));
  }
  if (wants_page) {
    log_info("wrote {}{}", page,
             map_tokens < tokens ? fmt::format(", with attention maps of the first {} tokens", map_tokens) : "");
  }
  return 0;
}

}  // namespace

Command inspect_command() {
  return {
      {.name = "inspect",
       .words = "RUN|MODEL",
       .summary = "what a model does with a text: activations, attention, gradients, layer by layer",
       .note =
           "MODEL is another tool's file or folder, as minillm import reads it. docs/numbers.md defines the numbers.",
       .min_words = 1,
       .max_words = 1,
       .options = {{"text", "TEXT", "", "what the model reads, behind <s>", true},
                   {"html", "FILE", "", "a page with attention maps, charts and the table; opens anywhere"},
                   {"checkpoint", "best|last|N", "last", "which checkpoint of a run"},
                   {"json", "", "", "one JSON object on standard output"}},
       .required = {"text"},
       .examples = {"minillm inspect runs/quickstart --text \"It is a truth universally acknowledged\"",
                    "minillm inspect runs/quickstart --text \"It is a truth\" --html inspect.html"}},
      run_inspect};
}

}  // namespace minillm::cli
