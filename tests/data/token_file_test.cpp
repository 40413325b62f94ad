#include "data/token_file.h"

#include "data/import_tokens.h"
#include "data/prepare.h"
#include "data/sha256.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

#include <cmath>
#include <cstring>

using namespace minillm;
using namespace minillm::test;

namespace {

std::string little_endian(const std::vector<uint32_t>& values, size_t width) {
  std::string bytes;
  for (uint32_t value : values) {
    for (size_t i = 0; i < width; ++i) {
      bytes += static_cast<char>(value >> (8 * i) & 255);
    }
  }
  return bytes;
}

/// A data file made by hand, so that it can be wrong in one place.
template <class Body>
std::string hand_made(const TemporaryFolder& folder, int64_t vocab_size, Body body) {
  const std::string path = folder / "data.h5";
  H5Writer writer(path, token_format());
  writer.set_attribute("/", "vocab_size", vocab_size);
  writer.set_attribute("/", "source", "by hand");
  body(writer);
  writer.commit();
  return path;
}

template <class T>
void write_tokens(H5Writer& writer, const std::string& name, const std::vector<T>& values) {
  writer.write(name, values.data(), {static_cast<int64_t>(values.size())});
}

std::string refusal(const std::string& path) {
  return message_of(Fault::input, [&] { TokenFile::open(path); });
}

ImportOptions import_options(const TemporaryFolder& folder, int64_t vocab_size) {
  ImportOptions options;
  options.file = folder / "train.bin";
  options.out = folder / "data.h5";
  options.vocab_size = vocab_size;
  return options;
}

}  // namespace

TEST_CASE("ids outside the vocabulary are found at load with position and value (D04)") {
  const TemporaryFolder folder;
  std::vector<uint16_t> ids(5000, 7);
  ids[1234] = 999;
  const auto with_val = [&](H5Writer& writer) {
    write_tokens(writer, "/train", std::vector<uint16_t>(10, 7));
    write_tokens(writer, "/val", ids);
  };
  CHECK_CONTAINS(refusal(hand_made(folder, 512, with_val)),
                 "data.h5 /val: the token at position 1234 is outside the vocabulary; found 999; expected ids below "
                 "vocab_size 512");
  CHECK(TokenFile::open(hand_made(folder, 1000, with_val)).val[1234] == 999);
  const auto minus_one = [&](H5Writer& writer) {
    std::vector<uint32_t> wide(5000, 7);
    wide[1234] = UINT32_MAX;
    write_tokens(writer, "/train", wide);
    write_tokens(writer, "/val", std::vector<uint16_t>(10, 7));
  };
  CHECK_CONTAINS(refusal(hand_made(folder, 512, minus_one)), "/train: the token at position 1234");
}

TEST_CASE("unexpected types and shapes inside a data file are named (D11)") {
  const TemporaryFolder folder;
  const std::vector<uint16_t> ids = {1, 2, 3, 4};
  const auto file = [&](auto write_train) {
    return hand_made(folder, 512, [&](H5Writer& writer) {
      write_train(writer);
      write_tokens(writer, "/val", ids);
    });
  };
  const std::vector<double> doubles = {1, 2};
  CHECK_CONTAINS(refusal(file([&](H5Writer& w) { w.write("/train", doubles.data(), {2}); })),
                 "data.h5 /train: has the wrong type; found float64; expected u16 or u32");
  CHECK_CONTAINS(refusal(file([&](H5Writer& w) { w.write_bytes("/train", "text"); })), "found u8; expected u16 or u32");
  CHECK_CONTAINS(refusal(file([&](H5Writer& w) {
                   w.write("/train", ids.data(), {2, 2});
                 })),
                 "/train: has the wrong shape; found [2, 2]; expected rank 1");
  CHECK_CONTAINS(refusal(file([&](H5Writer&) {})), "/train: the dataset is missing");
  CHECK_CONTAINS(refusal(file([&](H5Writer& w) { w.write("/train/x", ids.data(), {4}); })), "/train: is a group");
  CHECK(TokenFile::open(file([&](H5Writer& w) { w.write("/train", ids.data(), {0}); })).train.size() == 0);
  for (int64_t vocab_size : {0, 1}) {
    CHECK_CONTAINS(refusal(hand_made(folder, vocab_size, [](H5Writer&) {})),
                   fmt::format("vocab_size makes no sense; found {}; expected 2 to 2147483647", vocab_size));
  }
}

TEST_CASE("nanoGPT's raw files are imported") {
  const TemporaryFolder folder;
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < 1000; ++i) {
    ids.push_back(i % 300);
  }
  write_file(folder / "train.bin", little_endian(ids, 2));
  const ImportSummary summary = import_tokens(import_options(folder, 300));
  CHECK(summary.train_tokens == 900);
  CHECK(summary.val_tokens == 100);
  const TokenFile file = TokenFile::open(folder / "data.h5");
  CHECK(file.train[299] == 299);
  CHECK(file.train.size() == 900);
  CHECK(file.val[0] == 0);
  CHECK(file.vocab_size == 300);
  CHECK(file.tokenizer.empty());
  CHECK_FALSE(file.val_bytes.has_value());
  CHECK(file.unigram_loss.value() == doctest::Approx(std::log(300.0)).epsilon(1e-6));
  CHECK(file.sha256 == summary.sha256);
  CHECK_CONTAINS(file.source, sha256_hex(little_endian(ids, 2)));
  CHECK_CONTAINS(summary.to_text(), "900 training and 100 validation tokens");
}

TEST_CASE("large ids stay what they are, or are refused (D05)") {
  const TemporaryFolder folder;
  const std::vector<uint32_t> ids = {65535, 65536, 70000, 1};
  write_file(folder / "train.bin", little_endian(ids, 4));
  ImportOptions options = import_options(folder, 70001);
  options.val_share = 0;
  import_tokens(options);
  const TokenFile file = TokenFile::open(folder / "data.h5");
  CHECK(file.train[0] == 65535);
  CHECK(file.train[1] == 65536);
  CHECK(file.train[2] == 70000);
  CHECK(file.train[3] == 1);
  CHECK(file.val.size() == 0);
  CHECK_FALSE(file.unigram_loss.has_value());
  options.vocab_size = 70000;
  CHECK_CONTAINS(
      message_of(Fault::input, [&] { import_tokens(options); }),
      "train.bin: the token at position 2 is outside the vocabulary; found 70000; expected ids below --vocab "
      "70000");
  options.vocab_size = 65536;
  options.dtype = "u32";
  CHECK_CONTAINS(message_of(Fault::input, [&] { import_tokens(options); }), "position 1");
  CHECK(TokenFile::open(folder / "data.h5").vocab_size == 70001);  // the good file stays
}

TEST_CASE("llm.c's header is read and checked") {
  const TemporaryFolder folder;
  const auto with_header = [&](uint32_t magic, uint32_t version, uint32_t count, size_t width) {
    std::vector<uint32_t> header(256, 0);
    header[0] = magic;
    header[1] = version;
    header[2] = count;
    write_file(folder / "train.bin", little_endian(header, 4) + little_endian({5, 6, 7, 8, 9}, width));
    return import_options(folder, 10);
  };
  ImportOptions options = with_header(20240520, 1, 5, 2);
  options.val_file = folder / "train.bin";
  CHECK(import_tokens(options).val_tokens == 5);
  CHECK(TokenFile::open(options.out).val[4] == 9);
  CHECK(import_tokens(with_header(20240801, 7, 5, 4)).train_tokens == 5);
  const auto refused = [&](const ImportOptions& wrong) {
    return message_of(Fault::input, [&] { import_tokens(wrong); });
  };
  CHECK_CONTAINS(refused(with_header(20240520, 2, 5, 2)), "unknown version; found 2; expected 1");
  CHECK_CONTAINS(refused(with_header(20240520, 1, 6, 2)), "the header says 6 tokens; found 1034 bytes; expected 1036");
  CHECK_CONTAINS(refused(with_header(0x88d83401, 1, 5, 2)), "byte-swapped");
  for (const uint32_t magic : {20240520U, 20240801U}) {
    for (const size_t size : {4, 8, 1022, 1023}) {
      options = with_header(magic, magic == 20240520 ? 1 : 7, 5, 2);
      std::filesystem::resize_file(options.file, size);
      CHECK_CONTAINS(refused(options),
                     fmt::format("train.bin: the file ends inside the header of llm.c's token files; found {} bytes; "
                                 "expected at least 1024; it was cut: copy it again",
                                 size));
    }
  }
  options = with_header(20240520, 1, 5, 2);
  options.dtype = "u32";
  CHECK_CONTAINS(refused(options), "says otherwise in its header");
  options.dtype = "u8";
  CHECK_CONTAINS(refused(options), "--dtype: unknown type; found u8");
}

TEST_CASE("splits that nothing can be done with are refused or named") {
  const TemporaryFolder folder;
  const auto options_for = [&](const std::vector<uint32_t>& ids, double val_share) {
    write_file(folder / "train.bin", little_endian(ids, 2));
    ImportOptions options = import_options(folder, 10);
    options.val_share = val_share;
    return options;
  };
  const auto refused = [&](const ImportOptions& options) {
    return message_of(Fault::input, [&] { import_tokens(options); });
  };
  std::vector<uint32_t> header(256, 0);
  header[0] = 20240520;
  header[1] = 1;
  write_file(folder / "train.bin", little_endian(header, 4));
  CHECK(refused(import_options(folder, 10)) ==
        folder /
            "train.bin: has too few tokens to train on: one is predicted from another; found 0 and 0 held out; "
            "expected 2 or more");
  CHECK_CONTAINS(refused(options_for({1}, 0)), "found 1 and 0 held out");
  CHECK_CONTAINS(refused(options_for({1, 2, 3}, 0.9)), "found 1 and 2 held out");
  CHECK(folder.names() == std::vector<std::string>{"train.bin"});
  const std::string without = import_tokens(options_for({1, 2, 3}, 0)).to_text();
  CHECK_CONTAINS(without, "no held-out tokens: a run on it trains without evaluations, eval refuses it\n");
  CHECK_CONTAINS(import_tokens(options_for({1, 2, 3}, 0.4)).to_text(), "a single held-out token is too short for any");
  CHECK_FALSE(contains(import_tokens(options_for({1, 2, 3, 4}, 0.5)).to_text(), "held-out"));
}

TEST_CASE("raw files that cannot be right are refused") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& bytes, int64_t vocab) {
    write_file(folder / "train.bin", bytes);
    return message_of(Fault::input, [&] { import_tokens(import_options(folder, vocab)); });
  };
  CHECK_CONTAINS(refused("abc", 65536), "ends inside a token; found 3 bytes; expected a multiple of 2");
  CHECK_CONTAINS(refused("", 10), "empty (0 bytes)");
  CHECK_CONTAINS(refused("ab", 0), "--vocab");
  CHECK_CONTAINS(refused(std::string(2, '\0'), 1), "--vocab: the number of ids is needed; found 1; expected 2 to");
  CHECK_CONTAINS(refused("minillm-file\nx", 65536), "is not a raw token file: looks like a minillm file");
  CHECK_CONTAINS(refused("\x93NUMPY\x01\x01", 65536), "looks like a NumPy array");
  const int32_t magic = 20240326;
  CHECK_CONTAINS(
      refused(std::string(reinterpret_cast<const char*>(&magic), 4) + "abcd", 65536),
      "looks like a GPT-2 model of llm.c; expected little-endian integers and nothing else, or llm.c's header "
      "before them; minillm import makes a run of it");
  write_file(folder / "train.bin", "abcd");
  ImportOptions onto_itself = import_options(folder, 65536);
  onto_itself.out = onto_itself.file;
  CHECK_CONTAINS(message_of(Fault::input, [&] { import_tokens(onto_itself); }), "is both the input and the output");
  CHECK(read_file(folder / "train.bin") == "abcd");
  CHECK(folder.names() == std::vector<std::string>{"train.bin"});
}
