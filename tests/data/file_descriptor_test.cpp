#include "data/file_descriptor.h"

#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

#include <doctest/doctest.h>
#include <fcntl.h>

using namespace minillm;
using namespace minillm::test;

TEST_CASE("reading exactly so many bytes, wherever they stand") {
  const TemporaryFolder folder;
  const std::string path = folder.write("file", "abcdefgh");
  const FileDescriptor file = open_for_reading(path);
  std::string bytes(3, '.');
  read_exactly(file.get(), bytes.data(), 3, 5, path);
  CHECK(bytes == "fgh");
  read_exactly(file.get(), bytes.data(), 0, 100, path);
  CHECK(bytes == "fgh");
}

TEST_CASE("a file that ends too early is wrong input, a read that fails is failed work") {
  const TemporaryFolder folder;
  const std::string path = folder.write("file", "abcdefgh");
  const FileDescriptor file = open_for_reading(path);
  std::string bytes(4, '.');
  CHECK(message_of(Fault::input, [&] { read_exactly(file.get(), bytes.data(), 4, 5, path); }) ==
        path +
            ": the file ends before what stands in it; found the end at byte 8; expected 1 more bytes; it was cut: "
            "copy it again");
  const FileDescriptor unreadable(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  CHECK(message_of(Fault::work, [&] { read_exactly(unreadable.get(), bytes.data(), 4, 0, path); }) ==
        path + ": cannot be read: Bad file descriptor");
  CHECK(message_of(Fault::work, [&] { read_fully(unreadable.get(), bytes.data(), 4, path); }) ==
        path + ": cannot be read: Bad file descriptor");
}
