// Dialogues: what a template writes, where an answer stops, and that turns read one by one give what reading the whole
// dialogue again would.

#include "generate/chat.h"

#include "tests/small_model.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

using namespace minillm;

namespace {

/// A token for each byte: every turn has ids of its own.
class Bytes final : public Tokenizer {
 public:
  TokenizerKind tokenizer_kind() const override { return TokenizerKind::words; }
  int32_t vocab_size() const override { return 3 + 256; }
  int32_t unk_id() const override { return 0; }
  int32_t bos_id() const override { return 1; }
  int32_t eos_id() const override { return 2; }
  using Tokenizer::encode;
  void encode(std::string_view bytes, std::vector<int32_t>& ids) const override {
    for (const char c : bytes) {
      ids.push_back(3 + static_cast<unsigned char>(c));
    }
  }
  std::string_view bytes(int32_t id) const override { return {&all_[static_cast<size_t>(id)], id < 3 ? 0U : 1U}; }
  std::string piece(int32_t id) const override { return std::string(bytes(id)); }
  float score(int32_t /*id*/) const override { return 0; }
  PieceKind kind(int32_t id) const override { return id < 3 ? PieceKind::control : PieceKind::normal; }
  const std::string& serialized() const override { return all_; }

 private:
  std::string all_ = [] {
    std::string all(3, '\0');
    for (int byte = 0; byte < 256; ++byte) {
      all += static_cast<char>(byte);
    }
    return all;
  }();
};

const Bytes& letters() {
  static const Bytes tokenizer;
  return tokenizer;
}

struct Fixture {
  explicit Fixture(int64_t context) {
    ModelConfig config = small_model(letters().vocab_size(), 32);
    config.max_seq_len = context;
    derive(config, 0, context);
    model = std::make_unique<Transformer>(config);
    model->allocate(DType::float32, 5, false);
    for (const NamedTensor& tensor : model->parameters().named_tensors()) {
      for (int64_t i = 0; i < tensor.value.numel() && tensor.value.shape.rank() == 2; ++i) {
        tensor.value.set(i, 8 * tensor.value.at(i));
      }
    }
  }

  Chat chat(const ChatOptions& options) { return {*model, letters(), sampler, options, {}}; }

  /// What the model writes behind `ids` when it reads them at once.
  std::vector<int32_t> continuation(const std::vector<int32_t>& ids, int64_t count) {
    return generate(*model, ids, count, sampler, rules_of(letters()), {}).tokens;
  }

  Sampler sampler = Sampler({.temperature = 0}, 1);
  std::unique_ptr<Transformer> model;
};

void append(std::vector<int32_t>& ids, const std::vector<int32_t>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

const auto ignore = [](std::string_view) {};

}  // namespace

TEST_CASE("turns read one by one give what the whole dialogue gives") {
  Fixture fixture(256);
  Chat chat = fixture.chat({.template_name = "llama2", .system = "be {brief}", .max_tokens = 7});
  std::vector<int32_t> whole;
  const std::string written[] = {"[INST] <<SYS>>\nbe {brief}\n<</SYS>>\n\nhello {user} [/INST]", "[INST] more [/INST]",
                                 "[INST] and more [/INST]"};
  const std::string said[] = {"hello {user}", "more", "and more"};
  for (size_t turn = 0; turn < 3; ++turn) {
    CAPTURE(turn);
    whole.push_back(letters().bos_id());
    append(whole, letters().encode(written[turn]));
    const ChatAnswer answer = chat.say(said[turn], ignore);
    CHECK(answer.generation.tokens == fixture.continuation(whole, 7));
    CHECK(answer.generation.tokens.size() == 7);
    CHECK_FALSE(answer.began_anew);
    append(whole, answer.generation.tokens);
    whole.push_back(letters().eos_id());
  }
}

TEST_CASE("an answer that did not end by the stop text gets it before the next turn") {
  Fixture fixture(256);
  Chat chat = fixture.chat({.template_name = "chatml", .max_tokens = 5});
  std::vector<int32_t> whole = {letters().bos_id()};
  append(whole, letters().encode("<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n"));
  const ChatAnswer first = chat.say("a", ignore);
  CHECK(first.generation.tokens == fixture.continuation(whole, 5));
  append(whole, first.generation.tokens);
  append(whole, letters().encode("<|im_end|>\n<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\n"));
  CHECK(chat.say("b", ignore).generation.tokens == fixture.continuation(whole, 5));
}

TEST_CASE("a turn without room begins the dialogue anew, one that is too long by itself is refused") {
  Fixture fixture(48);
  Chat chat = fixture.chat({.template_name = "plain", .max_tokens = 6});
  const ChatAnswer first = chat.say("hello", ignore);  // 28 tokens and 6 new ones
  CHECK_FALSE(first.began_anew);
  CHECK_THROWS_AS(chat.say(std::string(40, 'x'), ignore), Error);
  const ChatAnswer second = chat.say("hello", ignore);
  CHECK(second.began_anew);
  CHECK(second.generation.tokens == first.generation.tokens);
}

TEST_CASE("templates are found by name, an unknown one is refused with the names there are") {
  for (const std::string& name : chat_template_names()) {
    CHECK(chat_template(name).name == name);
  }
  CHECK_THROWS_WITH_AS(chat_template("jinja"), doctest::Contains("llama2, chatml, plain"), Error);
}

TEST_CASE("a stop text is found however it is cut, and nothing of it is shown") {
  const std::string stop = "\nUser:";
  const std::string text = "one\n\nUse two\nUser: three";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    CAPTURE(piece);
    StopText filter(stop);
    std::string shown;
    for (size_t at = 0; at < text.size(); at += piece) {
      shown += filter.feed(text.substr(at, piece));
    }
    shown += filter.flush();
    CHECK(shown == "one\n\nUse two");
    CHECK(filter.found());
  }
}

TEST_CASE("a text without the stop comes whole, as soon as it cannot be its beginning") {
  StopText filter("\nUser:");
  CHECK(filter.feed("a\nUs") == "a");
  CHECK(filter.feed("ual") == "\nUsual");
  CHECK(filter.feed("\nUser") == "");
  CHECK(filter.flush() == "\nUser");
  CHECK_FALSE(filter.found());
  StopText none("");
  CHECK(none.feed("anything") == "anything");
  CHECK_FALSE(none.found());
}
