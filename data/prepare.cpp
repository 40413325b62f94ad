#include "data/prepare.h"

#include "core/error.h"
#include "core/log.h"
#include "core/parallel.h"
#include "core/rng.h"
#include "core/text.h"
#include "data/corpus.h"
#include "data/sha256.h"
#include "data/token_file.h"
#include "data/token_writer.h"
#include "data/tokenizer.h"
#include "data/user_block.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
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

/// Some characters of `text` from a little before `place`, for a message.
std::string excerpt(std::string_view text, size_t place) {
  constexpr size_t around = 16;
  const auto inside_character = [&](size_t at) {
    return at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  };
  size_t begin = place - std::min(place, around);
  size_t end = std::min(text.size(), place + around);
  while (inside_character(begin) && place - begin < around + 3) {
    --begin;
  }
  while (inside_character(end) && end - place < around + 3) {
    ++end;
  }
  return "'" + printable(text.substr(begin, end - begin)) + "'";
}

/// `decoded` must be `text`, from whose ids it was made. `name` is the tokenizer's file, or "" for one trained here.
void check_gave_back(std::string_view text, std::string_view decoded, const std::string& name) {
  if (decoded == text) {
    return;
  }
  const auto differ = std::mismatch(text.begin(), text.end(), decoded.begin(), decoded.end()).first;
  const size_t place = static_cast<size_t>(differ - text.begin());
  fail_input({.where = name.empty() ? "tokenizer" : name,
              .what = "the tokenizer changes text",
              .found = fmt::format("{} for {}", excerpt(decoded, place), excerpt(text, place)),
              .expected = "the same bytes",
              .hint = name.empty() ? "that must not be: please report it with the text"
                                   : "use a model without normalisation, dummy prefix and removal of blanks"});
}

/// Other people's models may normalise; what they do to blanks and compatibility characters shows it.
void check_exact(const Tokenizer& tokenizer, const std::string& path) {
  for (const char* text : {"Hello", " Hello", "  a  b\t c ", "ﬁ\xc2\xa0…", "x\n y\n"}) {
    check_gave_back(text, tokenizer.decode(tokenizer.encode(text)), path);
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

void encode_piece(const Tokenizer& tokenizer, const std::string& name, Piece& piece) {
  try {
    if (piece.starts_document) {
      piece.ids.push_back(tokenizer.bos_id());
    }
    tokenizer.encode(piece.text, piece.ids);
    check_gave_back(piece.text, tokenizer.decode(piece.ids), name);
  } catch (...) {
    piece.error = std::current_exception();  // must not leave a thread of the team
  }
}

void write_pieces(const Tokenizer& tokenizer, const std::string& name, std::vector<Piece>& pieces,
                  TokenWriter& writer) {
  parallel_for(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      encode_piece(tokenizer, name, pieces[static_cast<size_t>(i)]);
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

/// Encodes and writes all text; returns the SHA-256 of the files' bytes as they were read here.
std::string encode_corpus(const Corpus& corpus, int64_t train_bytes, const Tokenizer& tokenizer,
                          const std::string& tokenizer_name, TokenWriter& writer) {
  Sha256 hash;
  CorpusReader reader(corpus, encode_block_bytes, &hash, &tokenizer);
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
      write_pieces(tokenizer, tokenizer_name, pieces, writer);
      waiting = 0;
    }
  }
  write_pieces(tokenizer, tokenizer_name, pieces, writer);
  return hash.hex();
}

/// Numbers and split are those of the first pass; the tokens must be of the same bytes. The reader notices another
/// size.
void check_unchanged(const Corpus& corpus, const std::string& sha256_before, const std::string& sha256) {
  if (sha256 != sha256_before) {
    fail_input({.where = corpus.files.size() == 1 ? corpus.files[0].path : fmt::format("{} files", corpus.files.size()),
                .what = "changed while the text was read",
                .found = "SHA-256 " + sha256,
                .expected = sha256_before,
                .hint = changed_text_hint});
  }
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

/// Names without folders: the source is part of the data's checksum, by which a resumed run knows its data, and the
/// same text is the same data from wherever it is read.
std::string describe_source(const Corpus& corpus, const CorpusSurvey& survey) {
  std::string names;
  for (const CorpusFile& file : corpus.files) {
    if (names.size() > 2000) {
      names += " ...";
      break;
    }
    names += (names.empty() ? "" : " ") + std::filesystem::path(file.path).filename().string();
  }
  std::string text = fmt::format("{} ({} files, {} bytes of text, sha256 {})", names, corpus.files.size(), survey.bytes,
                                 survey.sha256);
  return corpus.provenance.empty() ? text : text + "\n" + corpus.provenance.substr(0, 20000);
}

}  // namespace

PrepareSummary prepare(const PrepareOptions& options) {
  check_options(options);
  const Corpus corpus = find_corpus(options.inputs, options.separator, options.out);
  TokenWriter writer(options.out);
  log_info("reading {}", counted(static_cast<int64_t>(corpus.files.size()), "file"));
  const CorpusSurvey survey = survey_corpus(corpus);
  const CorpusCut cut = cut_corpus(corpus, survey.bytes, options.val_share);
  PrepareSummary summary;
  const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(options, corpus, cut.train_bytes, summary);
  writer.begin(tokenizer->vocab_size());
  log_info("encoding {} bytes", thousands(survey.bytes));
  const std::string sha256 = encode_corpus(corpus, cut.train_bytes, *tokenizer, options.tokenizer_path, writer);
  check_unchanged(corpus, survey.sha256, sha256);
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
  summary.sha256 = writer.finish(describe_source(corpus, survey), tokenizer.get(),
                                 TokenWriter::Bytes{summary.train_bytes, summary.val_bytes});
  return summary;
}

}  // namespace minillm
