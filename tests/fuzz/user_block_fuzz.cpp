// The block in front of our HDF5 files, which is checked before the library reads a byte.

#include "data/user_block.h"
#include "tests/fuzz/input_file.h"

#include <algorithm>

using namespace minillm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzz::InputFile input(data, size);
  const std::string start(reinterpret_cast<const char*>(data), std::min(size, UserBlock::size));
  guess_file_kind(start, size);
  format_of(start);
  return fuzz::read_or_refuse([&] {
    check_user_block(open_for_reading(input.path()), input.path(),
                     {.name = "minillm-tokens", .version = 1, .remedy = "make it again"});
  });
}
