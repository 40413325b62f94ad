#include "tests/data/prepare_support.h"

#include "core/parallel.h"
#include "data/corpus.h"
#include "data/sha256.h"
#include "data/token_file.h"
#include "data/tokenizer.h"

#include <cmath>

using namespace minillm;
using namespace minillm::test;

namespace {

std::string decode_all(const TokenFile& file) {
  const auto tokenizer = load_tokenizer(file.tokenizer, file.path);
  std::string text;
  for (const Tokens* tokens : {&file.train, &file.val}) {
    for (int64_t i = 0; i < tokens->size(); ++i) {
      text += tokenizer->bytes((*tokens)[i]);
    }
  }
  return text;
}

int64_t count_documents(const Tokens& tokens) {
  int64_t documents = 0;
  for (int64_t i = 0; i < tokens.size(); ++i) {
    documents += tokens[i] == 1 ? 1 : 0;
  }
  return documents;
}

}  // namespace

TEST_CASE("a text becomes a data file that holds all of it") {
  const TemporaryFolder folder;
  const std::string text = story(50000);
  write_file(folder / "in.txt", text);
  const PrepareSummary summary = prepare(options_for(folder));
  const TokenFile file = TokenFile::open(folder / "data.h5");
  CHECK(decode_all(file) == text);
  CHECK(folder.names() == std::vector<std::string>{"data.h5", "in.txt"});
  CHECK(file.vocab_size == 300);
  CHECK(file.train[0] == 1);
  CHECK(count_documents(file.train) == 1);
  CHECK(count_documents(file.val) == 0);  // the document goes on
  CHECK(summary.train_bytes + summary.val_bytes == static_cast<int64_t>(text.size()));
  CHECK(text[static_cast<size_t>(summary.train_bytes) - 1] == '\n');
  CHECK(static_cast<double>(summary.val_bytes) <= 0.1 * static_cast<double>(text.size()));
  CHECK(static_cast<double>(summary.val_bytes) > 0.1 * static_cast<double>(text.size()) - 100);
  CHECK(file.train_bytes == summary.train_bytes);
  CHECK(file.val_bytes == summary.val_bytes);
  CHECK(file.train.size() == summary.train_tokens);
  CHECK(file.sha256 == summary.sha256);
  CHECK(summary.windows(256) == (file.train.size() - 1) / 256);
  CHECK_CONTAINS(file.source, sha256_hex(text));
  CHECK_CONTAINS(summary.to_text(), "1 document from 1 file\n");
}

TEST_CASE("unigram loss is that of add-1/2 smoothed training counts on val") {
  const TemporaryFolder folder;
  write_file(folder / "in.txt", story(20000));
  prepare(options_for(folder, 280));
  const TokenFile file = TokenFile::open(folder / "data.h5");
  std::vector<double> counts(280, 0.5);
  for (int64_t i = 0; i < file.train.size(); ++i) {
    counts[static_cast<size_t>(file.train[i])] += 1;
  }
  double loss = 0;
  for (int64_t i = 0; i < file.val.size(); ++i) {
    loss -= std::log(counts[static_cast<size_t>(file.val[i])] / (static_cast<double>(file.train.size()) + 140));
  }
  CHECK(file.unigram_loss.value() == doctest::Approx(loss / static_cast<double>(file.val.size())).epsilon(1e-12));
}

TEST_CASE("the same file for any number of threads") {
  const TemporaryFolder folder;
  write_file(folder / "in.txt", story(700000));
  PrepareOptions options = options_for(folder);
  set_num_threads(1);
  const std::string one = prepare(options).sha256;
  set_num_threads(3);
  const std::string three = prepare(options).sha256;
  set_num_threads(2);
  CHECK(one == three);
}

TEST_CASE("carriage returns, marks, NUL and bad bytes stay and are reported (T05, T10, T21, T22)") {
  const TemporaryFolder folder;
  std::string text = "\xef\xbb\xbf" + story(20000);
  for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 2)) {
    text.replace(at, 1, "\r\n");
  }
  text += std::string("nul \0 bad \xff\xfe mark \xef\xbb\xbf \xe2\x96\x81 end", 29);
  write_file(folder / "in.txt", text);
  const PrepareSummary summary = prepare(options_for(folder));
  CHECK(decode_all(TokenFile::open(folder / "data.h5")) == text);
  CHECK(summary.crlf_lines == summary.lines);
  CHECK(summary.lines > 100);
  CHECK(summary.bom_files == 1);
  CHECK(summary.nul_bytes == 1);
  CHECK(summary.invalid_bytes == 2);
  const std::string printed = summary.to_text();
  CHECK_CONTAINS(printed, "lines end in CR LF; the carriage returns stay");
  CHECK_CONTAINS(printed, "1 of 1 files begin with a byte order mark");
  CHECK_CONTAINS(printed, "1 NUL bytes and 2 bytes that are not UTF-8");
}

TEST_CASE("a folder is its files by name; SOURCE is provenance") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "in");
  write_file(folder / "in/b.txt", story(6000, 2));
  write_file(folder / "in/a.txt", "first " + story(6000, 3));
  write_file(folder / "in/c.txt", "");
  write_file(folder / "in/.hidden", "hidden");
  write_file(folder / "in/SOURCE", "from nowhere, public domain\n");
  PrepareOptions options = options_for(folder);
  options.inputs = {folder / "in"};
  options.out = folder / "in/data.h5";
  for (int run = 0; run < 2; ++run) {  // the second time the output lies among the inputs
    const PrepareSummary summary = prepare(options);
    CHECK(summary.files == 2);
    CHECK(summary.documents == 2);
  }
  const TokenFile file = TokenFile::open(options.out);
  CHECK(decode_all(file) == read_file(folder / "in/a.txt") + read_file(folder / "in/b.txt"));
  CHECK(count_documents(file.train) == 2);
  CHECK_CONTAINS(file.source, "from nowhere, public domain");
}

TEST_CASE("a separator line parts documents and belongs to none") {
  const TemporaryFolder folder;
  std::string text;
  std::string kept;
  for (uint64_t i = 0; i < 40; ++i) {
    const std::string document = story(200, i) + (i == 20 ? "not <|end|> alone\n" : "");
    text += document + (i % 2 == 0 ? "<|end|>\n" : "<|end|>\r\n");
    kept += document;
  }
  text = "<|end|>\n<|end|>\n" + text + "<|end|>";
  write_file(folder / "in.txt", text);
  PrepareOptions options = options_for(folder);
  options.separator = "<|end|>";
  const PrepareSummary summary = prepare(options);
  const TokenFile file = TokenFile::open(folder / "data.h5");
  CHECK(summary.documents == 40);
  CHECK(count_documents(file.train) + count_documents(file.val) == 40);
  CHECK(decode_all(file) == kept);
  CHECK(summary.train_bytes + summary.val_bytes == static_cast<int64_t>(kept.size()));
}

TEST_CASE("blocks of any size give the same documents") {
  const TemporaryFolder folder;
  std::string text = "== doc\n" + std::string(500, 'x') + " tail\n--\n\n--\nlast line without end";
  write_file(folder / "a.txt", text);
  write_file(folder / "b.txt", "--\nother\n--\n");
  for (const std::optional<std::string>& separator : {std::optional<std::string>(), std::optional<std::string>("--")}) {
    const Corpus corpus = find_corpus({folder / "a.txt", folder / "b.txt"}, separator);
    std::vector<std::vector<std::string>> results;
    for (size_t block_bytes : {16, 17, 33, 64, 100000}) {
      CorpusReader reader(corpus, block_bytes);
      CorpusBlock block;
      std::vector<std::string> documents;
      while (reader.next(block)) {
        if (block.starts_document) {
          documents.emplace_back();
        }
        CHECK(!block.text.empty());
        documents.back() += block.text;
      }
      results.push_back(documents);
      CHECK(results.back() == results.front());
    }
    CHECK(results.front().size() == (separator ? 4 : 2));
  }
}

TEST_CASE("the split: no document part on both sides, whatever the shuffle (D08)") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text += fmt::format("marker{:03}x some words follow here\n", i);
  }
  write_file(folder / "in.txt", text);
  prepare(options_for(folder, 280));
  const TokenFile file = TokenFile::open(folder / "data.h5");
  const auto tokenizer = load_tokenizer(file.tokenizer, "t");
  const auto text_of = [&](const Tokens& tokens) {
    std::string result;
    for (int64_t i = 0; i < tokens.size(); ++i) {
      result += tokenizer->bytes(tokens[i]);
    }
    return result;
  };
  int both = 0;
  int in_val = 0;
  for (int i = 0; i < 100; ++i) {
    const std::string marker = fmt::format("marker{:03}x", i);
    const bool train = contains(text_of(file.train), marker);
    const bool val = contains(text_of(file.val), marker);
    CHECK((train || val));
    both += train && val ? 1 : 0;
    in_val += val ? 1 : 0;
  }
  CHECK(both == 0);
  CHECK(in_val == 10);
}

TEST_CASE("texts without line ends are cut between characters, and say so") {
  const TemporaryFolder folder;
  std::string line;
  for (int i = 0; i < 4000; ++i) {
    line += "模型😀";
  }
  write_file(folder / "in.txt", line);
  const PrepareSummary summary = prepare(options_for(folder, 263));
  CHECK_FALSE(summary.cut_at_line_end);
  CHECK_CONTAINS(summary.to_text(), "begins inside a line");
  CHECK(decode_all(TokenFile::open(folder / "data.h5")) == line);
  CHECK(summary.byte_share == 0);  // a character cut in two would show as bytes
  CHECK(summary.val_tokens > 100);
  write_file(folder / "in.txt", std::string(1000000, 'a'));
  CHECK(prepare(options_for(folder, 262)).val_bytes > 90000);
}

TEST_CASE("a split that is far from the share asked for is noted") {
  const TemporaryFolder folder;
  std::string text = "a short line of text\n";
  for (int i = 0; i < 4000; ++i) {
    text += "some words and no line end ";
  }
  write_file(folder / "in.txt", text);
  CHECK_CONTAINS(prepare(options_for(folder, 270)).to_text(), "of the text, 10.0 % were asked for");
  std::replace(text.begin(), text.end(), 'n', '\n');
  write_file(folder / "in.txt", text);
  CHECK_FALSE(contains(prepare(options_for(folder, 270)).to_text(), "were asked for"));
}

TEST_CASE("without a validation share everything is for training") {
  const TemporaryFolder folder;
  write_file(folder / "in.txt", story(5000));
  PrepareOptions options = options_for(folder, 270);
  options.val_share = 0;
  const PrepareSummary summary = prepare(options);
  CHECK(summary.val_tokens == 0);
  CHECK_FALSE(summary.unigram_loss.has_value());
  CHECK_CONTAINS(summary.to_text(), "the validation split is empty");
  CHECK_FALSE(TokenFile::open(folder / "data.h5").unigram_loss.has_value());
}

TEST_CASE("a tokenizer is reused from its model or from a data file") {
  const TemporaryFolder folder;
  write_file(folder / "in.txt", story(20000));
  prepare(options_for(folder));
  const TokenFile first = TokenFile::open(folder / "data.h5");
  write_file(folder / "t.model", first.tokenizer);
  write_file(folder / "in.txt", story(3000, 9));
  for (const char* name : {"t.model", "data.h5"}) {
    PrepareOptions options = options_for(folder);
    options.out = folder / "second.h5";
    options.vocab_size = {};
    options.tokenizer_path = folder / name;
    CHECK_FALSE(prepare(options).trained);
    CHECK(TokenFile::open(options.out).tokenizer_sha256 == first.tokenizer_sha256);
    options.vocab_size = 2048;
    CHECK_CONTAINS(refusal(options), "has another size; found 2048; expected 300");
  }
  PrepareOptions options = options_for(folder);
  options.tokenizer_path = folder / "in.txt";
  CHECK_CONTAINS(refusal(options), "in.txt: ");
}

TEST_CASE("a large text is sampled for the tokenizer, always the same way") {
  const TemporaryFolder folder;
  write_file(folder / "in.txt", story(600000));
  PrepareOptions options = options_for(folder);
  options.sample_bytes = 200000;
  const PrepareSummary summary = prepare(options);
  CHECK(summary.sampled);
  CHECK(summary.trained_bytes > 60000);
  CHECK(summary.trained_bytes < 400000);
  CHECK_CONTAINS(summary.to_text(), "learned from a sample of");
  CHECK(prepare(options).sha256 == summary.sha256);
  CHECK(decode_all(TokenFile::open(folder / "data.h5")) == story(600000));
}
