#include "data/import_tokens.h"

#include "core/error.h"
#include "data/file_descriptor.h"
#include "data/sha256.h"
#include "data/token_file.h"
#include "data/token_writer.h"
#include "data/user_block.h"

#include <unistd.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

namespace minillm {

namespace {

constexpr size_t header_bytes = 256 * sizeof(int32_t);
constexpr uint32_t magic_u16 = 20240520;
constexpr uint32_t magic_u32 = 20240801;

uint32_t little_endian(const unsigned char* bytes, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    value |= static_cast<uint32_t>(bytes[i]) << (8 * i);
  }
  return value;
}

/// A token file that is read from front to back.
class TokenSource {
 public:
  TokenSource(const std::string& path, const ImportOptions& options) : path_(path), file_(open_for_reading(path)) {
    const uint64_t bytes = file_size(file_.get(), path);
    bytes_ = bytes;
    std::array<unsigned char, header_bytes> header{};
    const size_t got = read_fully(file_.get(), header.data(), header.size(), path);
    hash_.update(header.data(), got);
    const uint32_t magic = got == header.size() ? little_endian(header.data(), 4) : 0;
    reject_cut_header(header.data(), got);
    if (magic == magic_u16 || magic == magic_u32) {
      read_header(header.data(), magic, bytes);
    } else {
      reject_swapped(header.data(), got);
      reject_other_formats({reinterpret_cast<const char*>(header.data()), got}, bytes);
      width_ = options.vocab_size <= 65536 ? 2 : 4;
      if (lseek(file_.get(), 0, SEEK_SET) < 0) {
        fail_input({.where = path, .what = "cannot be read from its beginning"});
      }
      hash_ = Sha256();
    }
    choose_width(options.dtype, magic == magic_u16 || magic == magic_u32);
    if (!has_header_) {
      tokens_ = static_cast<int64_t>(bytes / width_);
      if (bytes == 0) {
        fail_input({.where = path, .what = "the file is empty (0 bytes)"});
      }
      if (bytes % width_ != 0) {
        fail_input({.where = path,
                    .what = "the file ends inside a token",
                    .found = fmt::format("{} bytes", bytes),
                    .expected = fmt::format("a multiple of {}", width_)});
      }
    }
  }

  int64_t tokens() const { return tokens_; }

  /// `count` further ids, compared with the vocabulary.
  std::vector<int32_t> read(int64_t count, int64_t vocab_size) {
    std::vector<unsigned char> bytes(static_cast<size_t>(count) * width_);
    const size_t got = read_fully(file_.get(), bytes.data(), bytes.size(), path_);
    check_unchanged(got == bytes.size());
    hash_.update(bytes.data(), bytes.size());
    std::vector<int32_t> ids(static_cast<size_t>(count));
    for (size_t i = 0; i < ids.size(); ++i) {
      const uint32_t id = little_endian(bytes.data() + i * width_, width_);
      if (id >= static_cast<uint64_t>(vocab_size)) {
        fail_input({.where = path_,
                    .what = fmt::format("the token at position {} is outside the vocabulary",
                                        position_ + static_cast<int64_t>(i)),
                    .found = std::to_string(id),
                    .expected = fmt::format("ids below --vocab {}", vocab_size),
                    .hint = fmt::format("check --vocab, and --dtype (read as u{})", 8 * width_)});
      }
      ids[i] = static_cast<int32_t>(id);
    }
    position_ += count;
    return ids;
  }

  /// "train.bin (sha256 ...)", when all was read. Without its folder: see describe_source in data/prepare.cpp.
  std::string describe() {
    char more = 0;
    check_unchanged(read_fully(file_.get(), &more, 1, path_) == 0);
    return fmt::format("{} (sha256 {})", std::filesystem::path(path_).filename().string(), hash_.hex());
  }

 private:
  void check_unchanged(bool holds) const {
    if (!holds) {
      fail_input({.where = path_,
                  .what = "changed while it was read",
                  .found = fmt::format("{} bytes", file_size(file_.get(), path_)),
                  .expected = fmt::format("{} bytes", bytes_),
                  .hint = "run it again when nothing writes to the file"});
    }
  }

  void read_header(const unsigned char* header, uint32_t magic, uint64_t bytes) {
    const uint32_t version = little_endian(header + 4, 4);
    const uint32_t needed = magic == magic_u16 ? 1 : 7;
    if (version != needed) {
      fail_input({.where = path_,
                  .what = "the header has an unknown version",
                  .found = std::to_string(version),
                  .expected = std::to_string(needed)});
    }
    has_header_ = true;
    width_ = magic == magic_u16 ? 2 : 4;
    tokens_ = little_endian(header + 8, 4);
    const uint64_t expected = header_bytes + static_cast<uint64_t>(tokens_) * width_;
    if (bytes != expected) {
      fail_input({.where = path_,
                  .what = fmt::format("the header says {} tokens", tokens_),
                  .found = fmt::format("{} bytes", bytes),
                  .expected = fmt::format("{} bytes", expected)});
    }
  }

  void reject_cut_header(const unsigned char* header, size_t got) const {
    const uint32_t magic = got >= 4 && got < header_bytes ? little_endian(header, 4) : 0;
    if (magic == magic_u16 || magic == magic_u32) {
      fail_input({.where = path_,
                  .what = "the file ends inside the header of llm.c's token files",
                  .found = fmt::format("{} bytes", got),
                  .expected = fmt::format("at least {}", header_bytes),
                  .hint = "it was cut: copy it again"});
    }
  }

  void reject_swapped(const unsigned char* header, size_t got) const {
    const uint32_t swapped = got < 4 ? 0
                                     : uint32_t{header[0]} << 24 | uint32_t{header[1]} << 16 |
                                           uint32_t{header[2]} << 8 | uint32_t{header[3]};
    if (swapped == magic_u16 || swapped == magic_u32) {
      fail_input({.where = path_, .what = "the header looks byte-swapped", .expected = "little-endian integers"});
    }
  }

  /// Raw tokens have no mark, but files with a long one of their own are no tokens.
  void reject_other_formats(std::string_view start, uint64_t bytes) const {
    const std::string kind = guess_file_kind(std::string(start.substr(0, UserBlock::size)), bytes);
    if (kind == "a minillm file" || kind == "plain HDF5" || kind == "a NumPy array" || kind.ends_with(llmc_kinds)) {
      fail_input({.where = path_,
                  .what = "is not a raw token file: looks like " + kind,
                  .expected = "little-endian integers and nothing else, or llm.c's header before them",
                  .hint = kind == llmc_model_kind ? "minillm import makes a run of it" : ""});
    }
  }

  void choose_width(const std::string& dtype, bool from_header) {
    if (dtype.empty()) {
      return;
    }
    if (dtype != "u16" && dtype != "u32") {
      fail_input({.where = "--dtype", .what = "unknown type", .found = dtype, .expected = "u16 or u32"});
    }
    const size_t asked = dtype == "u16" ? 2 : 4;
    if (from_header && asked != width_) {
      fail_input({.where = "--dtype",
                  .what = path_ + " says otherwise in its header",
                  .found = dtype,
                  .expected = fmt::format("u{}", 8 * width_)});
    }
    width_ = asked;
  }

  std::string path_;
  FileDescriptor file_;
  Sha256 hash_;         // of the bytes read
  uint64_t bytes_ = 0;  // of the file, when it was opened
  bool has_header_ = false;
  size_t width_ = 2;
  int64_t tokens_ = 0;
  int64_t position_ = 0;
};

void copy_tokens(TokenSource& source, int64_t count, Split split, int64_t vocab_size, TokenWriter& writer) {
  constexpr int64_t at_once = int64_t{1} << 20;
  for (int64_t left = count; left > 0; left -= at_once) {
    writer.append(split, source.read(std::min(left, at_once), vocab_size));
  }
}

void check_options(const ImportOptions& options) {
  if (options.vocab_size < smallest_token_vocabulary || options.vocab_size > INT32_MAX) {
    fail_input({.where = "--vocab",
                .what = "the number of ids is needed",
                .found = std::to_string(options.vocab_size),
                .expected = fmt::format("{} to {}", smallest_token_vocabulary, INT32_MAX)});
  }
  if (!(options.val_share >= 0 && options.val_share < 1)) {
    fail_input({.where = "--val",
                .what = "is a share of the tokens",
                .found = fmt::format("{}", options.val_share),
                .expected = "0 <= share < 1"});
  }
}

}  // namespace

ImportSummary import_tokens(const ImportOptions& options) {
  check_options(options);
  TokenSource source(options.file, options);
  std::optional<TokenSource> val_source;
  if (!options.val_file.empty()) {
    val_source.emplace(options.val_file, options);
  }
  for (const std::string& input : {options.file, options.val_file}) {
    std::error_code error;
    if (!input.empty() && std::filesystem::equivalent(input, options.out, error) && !error) {
      fail_input({.where = input, .what = "is both the input and the output"});
    }
  }
  const double share = val_source ? 0 : options.val_share;
  const int64_t val_tokens = static_cast<int64_t>(std::floor(static_cast<double>(source.tokens()) * share));
  if (source.tokens() - val_tokens < 2) {
    fail_input({.where = options.file,
                .what = "has too few tokens to train on: one is predicted from another",
                .found = fmt::format("{} and {} held out", source.tokens() - val_tokens, val_tokens),
                .expected = "2 or more"});
  }
  TokenWriter writer(options.out);
  writer.begin(options.vocab_size);
  std::string description;
  if (!val_source) {
    copy_tokens(source, source.tokens() - val_tokens, Split::train, options.vocab_size, writer);
    copy_tokens(source, val_tokens, Split::val, options.vocab_size, writer);
    description = source.describe();
  } else {
    copy_tokens(source, source.tokens(), Split::train, options.vocab_size, writer);
    copy_tokens(*val_source, val_source->tokens(), Split::val, options.vocab_size, writer);
    description = source.describe() + ", " + val_source->describe();
  }
  ImportSummary summary;
  summary.out = options.out;
  summary.vocab_size = options.vocab_size;
  summary.train_tokens = writer.tokens(Split::train);
  summary.val_tokens = writer.tokens(Split::val);
  summary.unigram_loss = writer.unigram_loss();
  summary.sha256 = writer.finish(description, nullptr, std::nullopt);
  return summary;
}

std::string ImportSummary::to_text() const {
  std::string text = fmt::format("{}: {} training and {} validation tokens, vocabulary {}\n", out, train_tokens,
                                 val_tokens, vocab_size);
  if (std::isfinite(unigram_loss)) {
    text += fmt::format("unigram loss {:.4f} nats per token\n", unigram_loss);
  }
  if (val_tokens == 0) {
    text += "there are no held-out tokens: a run on it trains without evaluations, eval refuses it\n";
  } else if (val_tokens == 1) {
    text += "a single held-out token is too short for any window: set train.eval_every to 0\n";
  }
  return text + "there is no tokenizer inside: generate refuses a run on it, bits per byte is unknown\n";
}

}  // namespace minillm
