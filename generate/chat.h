#pragma once
// Dialogue: turns written by a template into one growing sequence, of which each token is read once.

#include "data/tokenizer.h"
#include "generate/generator.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

/// How a dialogue is written for a model, as fmt patterns of {system} and {user}.
struct ChatTemplate {
  std::string_view name;
  std::string_view first_with_system;  ///< the first turn, up to where the model goes on
  std::string_view first;              ///< without a system prompt
  std::string_view later;              ///< a later turn, behind `stop`
  std::string_view stop;               ///< text that ends an answer; "": only the end token does
  bool turns_are_texts = false;        ///< each turn with its answer stands between `<s>` and `</s>`
};

/// Throws an input Error that lists the names.
const ChatTemplate& chat_template(const std::string& name);
std::vector<std::string> chat_template_names();

/// Finds `stop` in a text that arrives in pieces.
class StopText {
 public:
  explicit StopText(std::string_view stop) : stop_(stop) {}

  /// The bytes that are known now not to be the stop's: at most stop.size() - 1 are held back. Nothing once it was
  /// found, nor what comes behind it.
  std::string feed(std::string_view bytes);

  /// What was held back, at the end of the text.
  std::string flush();

  bool found() const { return found_; }

 private:
  std::string stop_;
  std::string held_;  // may be the stop's beginning
  bool found_ = false;
};

struct ChatOptions {
  std::string template_name = "llama2";
  std::string system = {};   ///< "": none
  int64_t max_tokens = 256;  ///< of an answer
};

struct ChatAnswer {
  Generation generation;
  bool began_anew = false;  ///< the context had no room for the turn, so what was said before is forgotten
};

class Chat {
 public:
  /// Model, tokenizer and sampler are kept. Throws as chat_template and check_writes_text.
  Chat(const Transformer& model, const Tokenizer& tokenizer, Sampler& sampler, ChatOptions options,
       TapeOptions tape_options);

  /// Answers a turn of the user; the answer's bytes are given to `on_bytes` as they come, without what ended it. Throws
  /// an input Error when the turn alone, with the system prompt, does not fit the model's context; the dialogue stays
  /// as it was.
  ChatAnswer say(std::string_view text, const std::function<void(std::string_view)>& on_bytes);

 private:
  enum class Turn { first, later };

  std::vector<int32_t> ids_of_turn(Turn turn, std::string_view text) const;
  void check_turn_fits(size_t tokens) const;

  const ChatTemplate& template_;
  const Tokenizer& tokenizer_;
  Sampler& sampler_;
  ChatOptions options_;
  Decoder decoder_;
  std::vector<int32_t> unread_;  // the last answer's end
  bool ended_by_stop_ = false;   // and that end is the template's stop text
};

}  // namespace minillm
