#include "data/prepare.h"

#include "core/error.h"
#include "core/log.h"
#include "core/parallel.h"
#include "core/rng.h"
#include "core/text.h"
#include "data/corpus.h"
#include "data/token_file.h"
#include "data/token_writer.h"
#include "data/tokenizer.h"
#include "data/user_block.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>

namespace minillm {

namespace {

constexpr size_t sample_block_bytes = size_t{1} << 16;
constexpr size_t encode_block_bytes = size_t{1} << 18;
constexpr size_t batch_bytes = size_t{1} << 24;  // text in memory while encoding

void check_options(const PrepareOptions& options) {
  if (options.out.empty()) {
    fail_input({.where = "--out", .what = "the data file to write is missing"});
  }
  if (!(options.val_share >= 0 && options.val_share < 1)) {
    fail_input({.where = "--val",
                .what = "is a share of the text",
                .found = fmt::format("{}", options.val_share),
                .expected = "0 <= share < 1"});
  }
  if (options.separator && options.separator->find_first_of("\r\n") != std::string::npos) {
    fail_input({.where = "--separator",
                .what = "is compared with whole lines, so it cannot hold a line end",
                .found = printable(*options.separator),
                .expected = "one line; \"\" for blank lines"});
  }
}

/// The training part, or a keyed random choice of its blocks.
std::string sample_text(const Corpus& corpus, int64_t train_bytes, int64_t sample_bytes) {
  const double share = static_cast<double>(sample_bytes) / static_cast<double>(std::max<int64_t>(train_bytes, 1));
  RandomStream random(random_key(0, "tokenizer sample"));
  CorpusReader reader(corpus, sample_block_bytes);
  CorpusBlock block;
  std::string text;
  int64_t position = 0;
  while (position < train_bytes && reader.next(block)) {
    const size_t left = static_cast<size_t>(train_bytes - position);
    position += static_cast<int64_t>(block.text.size());
    if (share >= 1 || random.uniform() < share) {
      // A newline keeps the end of one document and the beginning of the next apart.
      text += block.starts_document && !text.empty() && text.back() != '\n' ? "\n" : "";
      text += block.text.substr(0, left);
    }
  }
  return text;
}

/// Other people's models may normalise; what they do to blanks and compatibility characters shows it.
void check_exact(const Tokenizer& tokenizer, const std::string& path) {
  for (const char* text : {"Hello", " Hello", "  a  b\t c ", "ﬁ\xc2\xa0…", "x\n y\n"}) {
    if (tokenizer.decode(tokenizer.encode(text)) != text) {
      fail_input({.where = path,
                  .what = "the tokenizer changes text",
                  .found = fmt::format("'{}' for '{}'", tokenizer.decode(tokenizer.encode(text)), text),
                  .expected = "the same bytes",
                  .hint = "use a model without normalisation, dummy prefix and removal of blanks"});
    }
  }
}

std::unique_ptr<Tokenizer> reuse_tokenizer(const PrepareOptions& options) {
  const std::string& path = options.tokenizer_path;
  const std::string bytes = read_bytes(path);
  const bool is_data_file = guess_file_kind(bytes.substr(0, UserBlock::size), bytes.size()) == "a minillm file";
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(is_data_file ? TokenFile::open(path).tokenizer : bytes, path);
  check_exact(*tokenizer, path);
  if (options.vocab_size && *options.vocab_size != tokenizer->vocab_size()) {
    fail_input({.where = "--vocab",
                .what = fmt::format("the tokenizer {} has another size", path),
                .found = std::to_string(*options.vocab_size),
                .expected = std::to_string(tokenizer->vocab_size()),
                .hint = "leave --vocab out"});
  }
  return tokenizer;
}

std::unique_ptr<Tokenizer> make_tokenizer(const PrepareOptions& options, const Corpus& corpus, int64_t train_bytes,
                                          PrepareSummary& summary) {
  if (!options.tokenizer_path.empty()) {
    return reuse_tokenizer(options);
  }
  const std::string text = sample_text(corpus, train_bytes, options.sample_bytes);
  const int64_t vocab_size = options.vocab_size.value_or(2048);
  log_info("training a tokenizer of {} pieces on {} bytes", thousands(vocab_size), thousands(text.size()));
  TokenizerTraining training = train_tokenizer(text, vocab_size);
  summary.trained = true;
  summary.trained_bytes = static_cast<int64_t>(text.size());
  summary.characters = training.characters;
  summary.characters_kept = training.characters_kept;
  summary.sampled = train_bytes > options.sample_bytes;
  return std::move(training.tokenizer);
}

/// A piece of a split: encoded by one thread, written in order.
struct Piece {
  std::string text;
  Split split = Split::train;
  bool starts_document = false;
  std::vector<int32_t> ids;
  std::exception_ptr error;
};

void encode_piece(const Tokenizer& tokenizer, Piece& piece) {
  try {
    if (piece.starts_document) {
      piece.ids.push_back(tokenizer.bos_id());
    }
    tokenizer.encode(piece.text, piece.ids);
    check(tokenizer.decode(piece.ids) == piece.text, "the tokenizer does not give back the text it encoded");
  } catch (...) {
    piece.error = std::current_exception();  // must not leave a thread of the team
  }
}

void write_pieces(const Tokenizer& tokenizer, std::vector<Piece>& pieces, TokenWriter& writer) {
  parallel_for(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      encode_piece(tokenizer, pieces[static_cast<size_t>(i)]);
    }
  });
  for (const Piece& piece : pieces) {
    if (piece.error) {
      std::rethrow_exception(piece.error);
    }
    writer.append(piece.split, piece.ids);
  }
  pieces.clear();
}

void encode_corpus(const Corpus& corpus, int64_t train_bytes, const Tokenizer& tokenizer, TokenWriter& writer) {
  CorpusReader reader(corpus, encode_block_bytes);
  CorpusBlock block;
  std::vector<Piece> pieces;
  size_t waiting = 0;
  int64_t position = 0;
  while (reader.next(block)) {
    const int64_t size = static_cast<int64_t>(block.text.size());
    const size_t in_train = static_cast<size_t>(std::clamp<int64_t>(train_bytes - position, 0, size));
    if (in_train > 0) {
      pieces.push_back({block.text.substr(0, in_train), Split::train, block.starts_document, {}, nullptr});
    }
    if (in_train < block.text.size()) {
      pieces.push_back({block.text.substr(in_train), Split::val, block.starts_document && in_train == 0, {}, nullptr});
    }
    position += size;
    waiting += block.text.size();
    if (waiting >= batch_bytes) {
      write_pieces(tokenizer, pieces, writer);
      waiting = 0;
    }
  }
  write_pieces(tokenizer, pieces, writer);
}

double share_of_bytes(const Tokenizer& tokenizer, const TokenWriter& writer) {
  int64_t byte_pieces = 0;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.kind(id) == PieceKind::byte && tokenizer.bytes(id) != "\n") {
      byte_pieces += writer.counts(Split::train)[static_cast<size_t>(id)];
      byte_pieces += writer.counts(Split::val)[static_cast<size_t>(id)];
    }
  }
  const int64_t tokens = writer.tokens(Split::train) + writer.tokens(Split::val);
  return static_cast<double>(byte_pieces) / static_cast<double>(tokens);
}

std::string describe_source(const PrepareOptions& options, const Corpus& corpus, const CorpusSurvey& survey) {
  std::string inputs;
  for (const std::string& input : options.inputs) {
    inputs += (inputs.empty() ? "" : " ") + input;
  }
  if (inputs.size() > 2000) {
    inputs = inputs.substr(0, 2000) + "...";
  }
  std::string text = fmt::format("{} ({} files, {} bytes of text, sha256 {})", inputs, corpus.files.size(),
                                 survey.bytes, survey.sha256);
  return corpus.provenance.empty() ? text : text + "\n" + corpus.provenance.substr(0, 20000);
}

}  // namespace

PrepareSummary prepare(const PrepareOptions& options) {
  check_options(options);
  const Corpus corpus = find_corpus(options.inputs, options.separator, options.out);
  TokenWriter writer(options.out);
  log_info("reading {} files", corpus.files.size());
  const CorpusSurvey survey = survey_corpus(corpus);
  const CorpusCut cut = cut_corpus(corpus, survey.bytes, options.val_share);
  PrepareSummary summary;
  const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(options, corpus, cut.train_bytes, summary);
  writer.begin(tokenizer->vocab_size());
  log_info("encoding {} bytes", thousands(survey.bytes));
  encode_corpus(corpus, cut.train_bytes, *tokenizer, writer);
  summary.out = options.out;
  summary.vocab_size = tokenizer->vocab_size();
  summary.files = static_cast<int64_t>(corpus.files.size());
  summary.documents = survey.documents;
  summary.train_bytes = cut.train_bytes;
  summary.val_bytes = survey.bytes - cut.train_bytes;
  summary.train_tokens = writer.tokens(Split::train);
  summary.val_tokens = writer.tokens(Split::val);
  summary.byte_share = share_of_bytes(*tokenizer, writer);
  if (summary.val_tokens > 0) {
    summary.unigram_loss = writer.unigram_loss();
  }
  summary.lines = survey.lines;
  summary.crlf_lines = survey.crlf_lines;
  summary.bom_files = survey.bom_files;
  summary.nul_bytes = survey.nul_bytes;
  summary.invalid_bytes = survey.invalid_bytes;
  summary.asked_val_share = options.val_share;
  summary.cut_at_line_end = cut.at_line_end;
  summary.sha256 = writer.finish(describe_source(options, corpus, survey), tokenizer.get(),
                                 TokenWriter::Bytes{summary.train_bytes, summary.val_bytes});
  return summary;
}

}  // namespace minillm
