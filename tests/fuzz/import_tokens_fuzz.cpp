// Raw token files, with llm.c's header or without: the first byte chooses the vocabulary and the word's size.

#include "data/import_tokens.h"
#include "tests/fuzz/input_file.h"

#include <cstdlib>
#include <filesystem>

using namespace minillm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) {
    return 0;
  }
  static const std::string out = fmt::format("/dev/shm/minillm-fuzz-{}.h5", getpid());
  const fuzz::InputFile input(data + 1, size - 1);
  ImportOptions options;
  options.file = input.path();
  options.vocab_size = 2 + (data[0] & 63);
  options.dtype = (data[0] & 64) != 0 ? "u16" : (data[0] & 128) != 0 ? "u32" : "";
  options.out = out;
  const int done = fuzz::read_or_refuse([&] { import_tokens(options); });
  std::error_code error;
  std::filesystem::remove(out, error);
  return done;
}
