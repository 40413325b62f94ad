// minillm chat: a dialogue with a trained model.

#include "generate/chat.h"
#include "cli/command.h"
#include "cli/text_source.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "generate/utf8_stream.h"
#include "train/trainer.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <string>

namespace minillm::cli {

namespace {

bool at_terminal() {
  return isatty(STDIN_FILENO) != 0;
}

/// A line of standard input; false at its end.
bool read_turn(std::string& text) {
  if (at_terminal()) {
    std::fputs("> ", stdout);
    std::fflush(stdout);
  }
  const bool got = static_cast<bool>(std::getline(std::cin, text));
  if (at_terminal() && !got) {
    std::fputs("\n", stdout);
  }
  return got;
}

void answer(Chat& chat, const std::string& text, int64_t context) {
  CharacterStream stream;
  const ChatAnswer answer = chat.say(text, [&](std::string_view bytes) {
    std::fputs(stream.feed(bytes).c_str(), stdout);
    std::fflush(stdout);
  });
  std::printf("%s\n", stream.flush().c_str());
  std::fflush(stdout);
  if (answer.began_anew) {
    log_info("the context of {} tokens had no room for this turn: what was said before it is forgotten", context);
  } else if (answer.generation.stopped_by == "context") {
    log_info("the context of {} tokens is full: the next turn begins anew", context);
  }
}

int run_chat(const Arguments& arguments) {
  ChatOptions options;
  options.template_name = arguments.text("template");
  options.system = arguments.text("system");
  options.max_tokens = arguments.integer("max-tokens", 1);
  chat_template(options.template_name);  // before the model is read
  const SamplerOptions drawing = sampler_options(arguments);
  const uint64_t seed = seed_of(arguments);
  const LoadedRun run = load_text_model(arguments);
  Sampler sampler(drawing, seed);
  const std::unique_ptr<DecodingWeights> rounded = rounded_weights(arguments, *run.model);
  TapeOptions tape = tape_options(run.config.train);
  tape.decoding = rounded.get();
  Chat chat(*run.model, *run.tokenizer, sampler, options, tape);
  log_info("seed {}", seed);
  std::string text;
  while (read_turn(text)) {
    try {
      if (!text.empty()) {
        answer(chat, text, run.config.model.max_seq_len);
      }
    } catch (const Error& error) {
      if (error.fault() != Fault::input || !at_terminal()) {
        throw;
      }
      log_warning("{}", error.what());  // a turn that is too long: who sits there can say it shorter
    }
  }
  return 0;
}

}  // namespace

Command chat_command() {
  return {{.name = "chat",
           .words = "RUN|MODEL",
           .summary = "a dialogue with a trained model",
           .note = "Each line of standard input is a turn; its end (Ctrl-D) ends the dialogue.",
           .min_words = 1,
           .max_words = 1,
           .options = text_options(
               {{"system", "TEXT", "", "what stands before the first turn", true},
                {"template", "NAME", "llama2", "how turns are written: " + join(chat_template_names(), ", ")}}),
           .examples = {"minillm chat runs/quickstart --template plain --temperature 0.8"}},
          run_chat};
}

}  // namespace minillm::cli
