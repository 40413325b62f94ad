// llama2.c's tokenizer.bin, of a vocabulary whose size stands in the first two bytes.

#include "formats/llama2c.h"
#include "tests/fuzz/input_file.h"

using namespace minillm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) {
    return 0;
  }
  const fuzz::InputFile input(data + 2, size - 2);
  const int64_t vocab_size = data[0] + 256 * (data[1] % 16);
  return fuzz::read_or_refuse([&] { read_llama2c_tokenizer(input.path(), vocab_size); });
}
