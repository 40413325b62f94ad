#include "generate/chat.h"

#include "core/error.h"
#include "core/text.h"

#include <algorithm>
#include <utility>

namespace minillm {

namespace {

// llama2: Touvron et al. 2023, as llama2.c writes it. chatml: OpenAI 2023, Qwen's. plain: for a model that was trained
// on no dialogues.
constexpr ChatTemplate templates[] = {
    {.name = "llama2",
     .first_with_system = "[INST] <<SYS>>\n{system}\n<</SYS>>\n\n{user} [/INST]",
     .first = "[INST] {user} [/INST]",
     .later = "[INST] {user} [/INST]",
     .stop = "",
     .turns_are_texts = true},
    {.name = "chatml",
     .first_with_system = "<|im_start|>system\n{system}<|im_end|>\n"
                          "<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n",
     .first = "<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n",
     .later = "\n<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n",
     .stop = "<|im_end|>"},
    {.name = "plain",
     .first_with_system = "{system}\nUser: {user}\nAssistant:",
     .first = "User: {user}\nAssistant:",
     .later = " {user}\nAssistant:",
     .stop = "\nUser:"},
};

}  // namespace

std::vector<std::string> chat_template_names() {
  std::vector<std::string> names;
  for (const ChatTemplate& row : templates) {
    names.emplace_back(row.name);
  }
  return names;
}

const ChatTemplate& chat_template(const std::string& name) {
  for (const ChatTemplate& row : templates) {
    if (row.name == name) {
      return row;
    }
  }
  fail_input({.where = "--template",
              .what = "is no template of dialogues",
              .found = printable(name),
              .expected = join(chat_template_names(), ", ")});
}

std::string StopText::feed(std::string_view bytes) {
  if (found_) {
    return "";
  }
  held_ += bytes;
  const size_t at = stop_.empty() ? std::string::npos : held_.find(stop_);
  found_ = at != std::string::npos;
  size_t known = at;
  if (!found_) {
    size_t held = std::min(held_.size(), stop_.empty() ? 0 : stop_.size() - 1);
    while (held > 0 && !stop_.starts_with(std::string_view(held_).substr(held_.size() - held))) {
      --held;
    }
    known = held_.size() - held;
  }
  const std::string text = held_.substr(0, known);
  held_.erase(0, found_ ? held_.size() : known);
  return text;
}

std::string StopText::flush() {
  return std::exchange(held_, "");
}

Chat::Chat(const Transformer& model, const Tokenizer& tokenizer, Sampler& sampler, ChatOptions options,
           TapeOptions tape_options)
    : template_(chat_template(options.template_name)),
      tokenizer_(tokenizer),
      sampler_(sampler),
      options_(std::move(options)),
      decoder_(model, model.config().max_seq_len, tape_options) {}

std::vector<int32_t> Chat::ids_of_turn(Turn turn, std::string_view text) const {
  std::vector<int32_t> ids;
  if (turn == Turn::first || template_.turns_are_texts) {
    ids.push_back(tokenizer_.bos_id());
  }
  const std::string_view first = options_.system.empty() ? template_.first : template_.first_with_system;
  std::string written = turn == Turn::later && !ended_by_stop_ ? std::string(template_.stop) : "";
  written += fmt::format(fmt::runtime(turn == Turn::first ? first : template_.later),
                         fmt::arg("system", options_.system), fmt::arg("user", text));
  tokenizer_.encode(written, ids);
  return ids;
}

void Chat::check_turn_fits(size_t tokens) const {
  const int64_t limit = decoder_.model().config().max_seq_len;
  if (static_cast<int64_t>(tokens) > limit) {
    fail_input({.where = "chat",
                .what = "the message, with the system prompt, is longer than the model's context",
                .found = fmt::format("{} tokens", tokens),
                .expected = fmt::format("at most {} (model.max_seq_len)", limit)});
  }
}

ChatAnswer Chat::say(std::string_view text, const std::function<void(std::string_view)>& on_bytes) {
  ChatAnswer answer;
  std::vector<int32_t> ids;
  if (decoder_.positions() > 0) {
    ids = unread_;
    const std::vector<int32_t> turn = ids_of_turn(Turn::later, text);
    ids.insert(ids.end(), turn.begin(), turn.end());
    answer.began_anew = static_cast<int64_t>(ids.size()) > decoder_.room();
  }
  if (decoder_.positions() == 0 || answer.began_anew) {
    ids = ids_of_turn(Turn::first, text);
    check_turn_fits(ids.size());
    decoder_.clear();
  }
  StopText stop(template_.stop);
  answer.generation =
      continue_text(decoder_, ids, options_.max_tokens, sampler_, rules_of(tokenizer_), [&](int32_t token) {
        on_bytes(stop.feed(tokenizer_.bytes(token)));
        return !stop.found();
      });
  on_bytes(stop.flush());
  ended_by_stop_ = stop.found();
  unread_.clear();
  if (!answer.generation.last_was_read) {
    unread_.push_back(answer.generation.tokens.back());
  }
  if (template_.turns_are_texts) {
    unread_.push_back(tokenizer_.eos_id());
  }
  return answer;
}

}  // namespace minillm
