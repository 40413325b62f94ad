// What prepare refuses, with its messages, and what is left when the disk fills or a file was cut.

#include "data/import_tokens.h"
#include "data/token_file.h"
#include "tests/data/prepare_support.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cmath>

using namespace minillm;
using namespace minillm::test;

namespace {

std::string utf16(const std::string& ascii) {
  std::string bytes = "\xff\xfe";
  for (char c : ascii) {
    bytes += c;
    bytes += '\0';
  }
  return bytes;
}

}  // namespace

TEST_CASE("each kind of useless input has its own message (T03, T11)") {
  const TemporaryFolder folder;
  PrepareOptions options = options_for(folder);
  CHECK_CONTAINS(refusal(options), "in.txt: cannot be opened: No such file or directory");
  write_file(folder / "in.txt", "");
  CHECK_CONTAINS(refusal(options), "in.txt: the file is empty (0 bytes)");
  write_file(folder / "in.txt", "\n  \n\t\r\n");
  CHECK_CONTAINS(refusal(options), "the text is blank");
  write_file(folder / "in.txt", utf16("Once upon a time\n"));
  CHECK_CONTAINS(refusal(options), "is UTF-16 text; expected UTF-8; convert it: iconv -f UTF-16 -t UTF-8");
  write_file(folder / "in.txt", utf16("Once upon a time\n").substr(2));
  CHECK_CONTAINS(refusal(options), "is UTF-16 text");
  std::string noise;
  RandomStream random(random_key(1, "noise"));
  for (int i = 0; i < 4000; ++i) {
    noise += static_cast<char>(random.below(256));
  }
  write_file(folder / "in.txt", "x" + noise);
  CHECK_CONTAINS(refusal(options), "is not text: looks like unknown binary data");
  write_file(folder / "in.txt", std::string("PK\x03\x04 and so on\0\0", 16));
  CHECK_CONTAINS(refusal(options), "is not text: looks like a zip archive");
  write_file(folder / "in.txt", story(20000));
  prepare(options);
  options.inputs = {folder / "data.h5"};
  options.out = folder / "other.h5";
  CHECK_CONTAINS(refusal(options), "is not text: looks like a minillm file");
  std::filesystem::create_directory(folder / "hollow");
  options.inputs = {folder / "hollow"};
  CHECK_CONTAINS(refusal(options), "the folder holds no text files");
  options.inputs = {};
  CHECK_CONTAINS(refusal(options), "no text was given");
  CHECK(folder.names() == std::vector<std::string>{"data.h5", "hollow", "in.txt"});
}

TEST_CASE("wrong options are refused before any work") {
  const TemporaryFolder folder;
  write_file(folder / "in.txt", story(5000));
  PrepareOptions options = options_for(folder);
  options.val_share = 1;
  CHECK_CONTAINS(refusal(options), "--val: is a share of the text; found 1; expected 0 <= share < 1");
  options.val_share = std::nan("");
  CHECK_CONTAINS(refusal(options), "--val");
  options = options_for(folder);
  options.out = folder / "absent/data.h5";
  CHECK_CONTAINS(refusal(options), "absent does not exist");
  options = options_for(folder);
  options.out = options.inputs[0];
  CHECK_CONTAINS(refusal(options), "is both the input and the output");
  options = options_for(folder, 4000);
  CHECK_CONTAINS(refusal(options), "the text is too small for a vocabulary of 4000");
  CHECK(folder.names() == std::vector<std::string>{"in.txt"});
  CHECK(read_file(folder / "in.txt") == story(5000));
}

TEST_CASE("a file under the target's name is replaced only when it is a data file, whole or damaged") {
  const TemporaryFolder folder;
  write_file(folder / "in.txt", story(20000));
  write_file(folder / "train.bin", std::string(4000, '\1'));
  ImportOptions import;
  import.file = folder / "train.bin";
  import.out = folder / "data.h5";
  import.vocab_size = 300;
  {
    H5Writer checkpoint(folder / "data.h5", {.name = "minillm-checkpoint", .version = 1, .remedy = ""});
    checkpoint.write_bytes("/config", "precious");
    checkpoint.commit();
  }
  const std::string bytes = read_file(folder / "data.h5");
  for (const size_t size : {bytes.size(), bytes.size() / 2, size_t{100}, size_t{50}}) {
    CAPTURE(size);
    write_file(folder / "data.h5", bytes.substr(0, size));
    const std::string expected = fmt::format(
        "data.h5: exists and is no data file of minillm; found a minillm{} file; expected a new name, or a "
        "minillm-tokens file to replace; give another name, or remove the file",
        size == 50 ? "" : "-checkpoint");
    CHECK_CONTAINS(refusal(options_for(folder)), expected);
    CHECK_CONTAINS(message_of(Fault::input, [&] { import_tokens(import); }), expected);
    CHECK(read_file(folder / "data.h5") == bytes.substr(0, size));
  }
  std::filesystem::remove(folder / "data.h5");
  prepare(options_for(folder));
  const std::string data = read_file(folder / "data.h5");
  for (const size_t size : {data.size(), data.size() / 2, size_t{100}}) {
    write_file(folder / "data.h5", data.substr(0, size));
    prepare(options_for(folder));
    CHECK(read_file(folder / "data.h5") == data);
  }
}

TEST_CASE("a disk that fills keeps the older data file (D10)") {
  const TemporaryFolder folder;
  write_file(folder / "in.txt", story(20000));
  prepare(options_for(folder));
  const std::string before = read_file(folder / "data.h5");
  struct rlimit old_limit {};
  getrlimit(RLIMIT_FSIZE, &old_limit);
  struct rlimit limit = old_limit;
  limit.rlim_cur = 8192;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  std::string message;
  try {
    prepare(options_for(folder));
  } catch (const Error& error) {
    message = error.fault() == Fault::work ? error.what() : "wrong fault";
  }
  setrlimit(RLIMIT_FSIZE, &old_limit);
  CHECK_CONTAINS(message, "data.h5: cannot be written: File too large");
  CHECK(read_file(folder / "data.h5") == before);
  CHECK(folder.names() == std::vector<std::string>{"data.h5", "in.txt"});
}

TEST_CASE("a cut data file says how much is there and what to do (D09)") {
  const TemporaryFolder folder;
  write_file(folder / "in.txt", story(20000));
  prepare(options_for(folder));
  const std::string bytes = read_file(folder / "data.h5");
  for (size_t cut : {size_t{100}, bytes.size() / 2}) {
    write_file(folder / "data.h5", bytes.substr(0, cut));
    CHECK_CONTAINS(message_of(Fault::input, [&] { TokenFile::open(folder / "data.h5"); }),
                   fmt::format("data.h5 is incomplete: {} of {} bytes; run minillm prepare again", cut, bytes.size()));
  }
}
