#include "data/corpus.h"

#include "data/prepare.h"
#include "data/token_file.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

#include <sentencepiece_trainer.h>

using namespace minillm;
using namespace minillm::test;

namespace {

std::string lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += fmt::format("line {} of a text that is quick to read\n", i * 7919 % 1000);
  }
  return text;
}

PrepareOptions options_for(const TemporaryFolder& folder, std::vector<std::string> inputs) {
  PrepareOptions options;
  options.inputs = std::move(inputs);
  options.out = folder / "data.h5";
  options.vocab_size = 280;
  return options;
}

/// The current folder, for as long as this lives.
class CurrentFolder {
 public:
  explicit CurrentFolder(const std::string& path) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(path);
  }
  ~CurrentFolder() { std::filesystem::current_path(before_); }
  CurrentFolder(const CurrentFolder&) = delete;
  CurrentFolder& operator=(const CurrentFolder&) = delete;

 private:
  std::filesystem::path before_;
};

/// A SentencePiece model that turns q into k, which no short trial of common text would show.
std::string model_that_changes_q(const TemporaryFolder& folder) {
  write_file(folder / "rules.tsv", "71\t6B\n");
  write_file(folder / "text", lines(50));
  const auto status = sentencepiece::SentencePieceTrainer::Train(fmt::format(
      "--input={} --model_prefix={} --model_type=bpe --vocab_size=290 --byte_fallback=true --minloglevel=3 "
      "--normalization_rule_tsv={} --add_dummy_prefix=false --remove_extra_whitespaces=false --hard_vocab_limit=false",
      folder / "text", folder / "q", folder / "rules.tsv"));
  REQUIRE(status.ok());
  return folder / "q.model";
}

}  // namespace

TEST_CASE("text may begin with the letters that mark a format") {
  const TemporaryFolder folder;
  for (const char* start : {"GGUF", "%PDF", "%PDF-1.7 und Größe\n"}) {
    write_file(folder / "in.txt", start + lines(100));
    CHECK(prepare(options_for(folder, {folder / "in.txt"})).files == 1);
    for (const std::string& binary : {std::string("\0\3", 2), std::string("\xe2\xe3")}) {
      write_file(folder / "in.txt", std::string(start) + "\n" + binary + lines(100));
      const std::string message = message_of(Fault::input, [&] { prepare(options_for(folder, {folder / "in.txt"})); });
      CHECK_CONTAINS(message, fmt::format("is not text: looks like {}", start[0] == 'G' ? "GGUF" : "PDF"));
    }
  }
  // A character that the end of what is looked at cuts in two is none of these.
  const std::string even = "GGUF" + std::string(65535 - 4, 'x') + "é\n" + lines(100);
  write_file(folder / "in.txt", even);
  CHECK(find_corpus({folder / "in.txt"}, {}).files[0].bytes == even.size());
}

TEST_CASE("a file that grows or shrinks between two passes is refused") {
  const TemporaryFolder folder;
  const std::string text = lines(100);
  for (const std::string& later : {text + "x", text.substr(1), std::string()}) {
    write_file(folder / "a.txt", "first\n");
    write_file(folder / "b.txt", text);
    const Corpus corpus = find_corpus({folder / "a.txt", folder / "b.txt"}, {});
    CHECK(survey_corpus(corpus).bytes == static_cast<int64_t>(text.size() + 6));
    write_file(folder / "b.txt", later);
    const std::string expected = fmt::format(
        "b.txt: changed while the text was read; found {} bytes; expected {} bytes; ", later.size(), text.size());
    CHECK_CONTAINS(message_of(Fault::input, [&] { survey_corpus(corpus); }), expected);
    CHECK_CONTAINS(message_of(Fault::input, [&] { cut_corpus(corpus, 1 << 20, 0.001); }), expected);
  }
}

TEST_CASE("the same text is the same data, however its path is written") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "texts");
  write_file(folder / "texts/in.txt", lines(300));
  write_file(folder / "texts/more.txt", lines(200));
  const CurrentFolder current(folder.path());
  const std::string data = prepare(options_for(folder, {"texts/in.txt", "texts/more.txt"})).sha256;
  const std::vector<std::vector<std::string>> spellings = {{"./texts/in.txt", "texts//more.txt"},
                                                           {folder / "texts/in.txt", folder / "texts/more.txt"},
                                                           {"texts/../texts/in.txt", "texts/more.txt"},
                                                           {"texts"},
                                                           {"./texts/"}};
  for (const std::vector<std::string>& inputs : spellings) {
    CAPTURE(inputs[0]);
    CHECK(prepare(options_for(folder, inputs)).sha256 == data);
  }
  CHECK_CONTAINS(TokenFile::open(folder / "data.h5").source, "in.txt more.txt (2 files, ");
  CHECK_FALSE(contains(TokenFile::open(folder / "data.h5").source, "texts"));
  write_file(folder / "texts/in.txt", lines(301));
  CHECK(prepare(options_for(folder, {"texts"})).sha256 != data);
}

TEST_CASE("a tokenizer that changes the text is refused with what it made of it") {
  const TemporaryFolder folder;
  PrepareOptions options = options_for(folder, {folder / "in.txt"});
  options.vocab_size = {};
  options.tokenizer_path = model_that_changes_q(folder);
  write_file(folder / "in.txt", lines(300));
  CHECK_CONTAINS(
      message_of(Fault::input, [&] { prepare(options); }),
      "q.model: the tokenizer changes text; found ' a text that is kuick to read\\x0ali' for ' a text that is quick "
      "to read\\x0ali'; expected the same bytes; use a model without normalisation");
  CHECK_FALSE(std::filesystem::exists(options.out));
}

TEST_CASE("the note about windows fits both splits") {
  const auto text = [](int64_t train_tokens, int64_t val_tokens) {
    PrepareSummary summary;
    summary.train_tokens = train_tokens;
    summary.val_tokens = val_tokens;
    return summary.to_text();
  };
  CHECK_CONTAINS(text(1000, 25),
                 "the validation split is shorter than a window of 256: set data.seq_len to at most 24\n");
  CHECK_CONTAINS(text(200, 25), "set data.seq_len to at most 24\n");
  CHECK_CONTAINS(text(200, 3000),
                 "the training split is shorter than a window of 256: set data.seq_len to at most 199\n");
  CHECK_CONTAINS(text(200, 0), "set data.seq_len to at most 199\n");
  CHECK_CONTAINS(text(1000, 1),
                 "the validation split is a single token, too short for any window: set train.eval_every");
  CHECK_CONTAINS(text(1000, 0), "the validation split is empty");
  CHECK_FALSE(contains(text(1000, 0), "seq_len"));
  CHECK_FALSE(contains(text(257, 257), "note: the"));
}
