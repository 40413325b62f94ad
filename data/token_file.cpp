#include "data/token_file.h"

#include "core/error.h"
#include "data/sha256.h"
#include "data/synthetic.h"

#include <algorithm>

namespace minillm {

namespace {

template <class T>
Tokens checked(const H5Reader& reader, const std::string& name, int64_t vocab_size) {
  std::vector<T> ids = reader.read<T>(name);
  const auto bad = std::find_if(ids.begin(), ids.end(), [&](T id) { return static_cast<int64_t>(id) >= vocab_size; });
  if (bad != ids.end()) {
    fail_input({.where = fmt::format("{} {}", reader.path(), name),
                .what = fmt::format("the token at position {} is outside the vocabulary", bad - ids.begin()),
                .found = std::to_string(*bad),
                .expected = fmt::format("ids below vocab_size {}", vocab_size),
                .hint = token_format().remedy});
  }
  return Tokens(std::move(ids));
}

Tokens read_split(const H5Reader& reader, const std::string& name, int64_t vocab_size) {
  const H5Type type = reader.type(name);
  if (type == H5Type::u16) {
    return checked<uint16_t>(reader, name, vocab_size);
  }
  if (type == H5Type::u32) {
    return checked<uint32_t>(reader, name, vocab_size);
  }
  fail_input({.where = fmt::format("{} {}", reader.path(), name),
              .what = "has the wrong type",
              .found = std::string(to_string(type)),
              .expected = "u16 or u32"});
}

std::optional<int64_t> bytes_of(const H5Reader& reader, const std::string& split) {
  return reader.has_attribute(split, "bytes") ? std::optional(reader.int_attribute(split, "bytes")) : std::nullopt;
}

}  // namespace

H5Format token_format() {
  return {.name = "minillm-tokens", .version = 1, .remedy = "run minillm prepare again"};
}

TokenFile TokenFile::open(const std::string& path) {
  const H5Reader reader(path, token_format());
  TokenFile file;
  file.path = path;
  file.vocab_size = reader.int_attribute("/", "vocab_size");
  if (file.vocab_size < smallest_token_vocabulary || file.vocab_size > INT32_MAX) {
    fail_input({.where = path,
                .what = "vocab_size makes no sense",
                .found = std::to_string(file.vocab_size),
                .expected = fmt::format("{} to {}", smallest_token_vocabulary, INT32_MAX),
                .hint = token_format().remedy});
  }
  file.train = read_split(reader, "/train", file.vocab_size);
  file.val = read_split(reader, "/val", file.vocab_size);
  if (reader.has("/tokenizer")) {
    file.tokenizer = reader.read_bytes("/tokenizer");
    file.tokenizer_sha256 = reader.string_attribute("/", "tokenizer_sha256");
    if (sha256_hex(file.tokenizer) != file.tokenizer_sha256) {
      fail_input({.where = path + " /tokenizer", .what = "tokenizer_sha256 names another tokenizer"});
    }
  }
  file.train_bytes = bytes_of(reader, "/train");
  file.val_bytes = bytes_of(reader, "/val");
  if (reader.has_attribute("/", "unigram_loss")) {
    file.unigram_loss = reader.double_attribute("/", "unigram_loss");
  }
  file.source = reader.string_attribute("/", "source");
  file.sha256 = reader.sha256();
  return file;
}

TokenFile open_data(const std::string& path) {
  return path == "synthetic" ? make_synthetic().data : TokenFile::open(path);
}

}  // namespace minillm
