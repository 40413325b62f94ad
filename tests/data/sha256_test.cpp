#include "data/sha256.h"

#include "data/file_descriptor.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

using namespace minillm;
using namespace minillm::test;

TEST_CASE("a file is hashed to its end, whatever its size is in blocks of 1 MiB") {
  const TemporaryFolder folder;
  for (const size_t bytes : {size_t{0}, size_t{5}, size_t{1} << 20, (size_t{3} << 20) + 5}) {
    std::string text(bytes, 'a');
    for (size_t i = 0; i < bytes; i += 7) {
      text[i] = static_cast<char>(i >> 8);
    }
    write_file(folder / "in", text);
    const FileDescriptor file = open_for_reading(folder / "in");
    Sha256 hash;
    hash.update_to_end(file.get(), folder / "in");
    CHECK(hash.hex() == sha256_hex(text));
  }
}
