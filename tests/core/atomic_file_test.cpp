#include "core/atomic_file.h"

#include "core/error.h"
#include "tests/support/temporary_folder.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

using namespace minillm;
using namespace minillm::test;
namespace fs = std::filesystem;

TEST_CASE("a disk without room says what it has none of") {
  const auto message = [](const DiskRoom& room, int error_number) {
    Problem problem = {.where = "d.h5", .what = "full"};
    describe_room(room, error_number, "9 bytes", problem);
    return describe(problem);
  };
  CHECK(message({.bytes = 7}, ENOSPC) == "d.h5: full; found 7 bytes free; expected 9 bytes");
  CHECK(message({.bytes = 7000, .has_inodes = false}, ENOSPC) ==
        "d.h5: full; found no inodes free: the file system holds as many files as it can, with 7000 bytes free; "
        "expected an inode for the file");
  CHECK(message({.bytes = 7, .has_inodes = false}, EFBIG) == "d.h5: full; found 7 bytes free; expected 9 bytes");
}

TEST_CASE("a file appears at its commit, whole") {
  const TemporaryFolder folder;
  const fs::path path = folder / "模型 a.bin";
  AtomicFile file(path.string());
  file.write("first ");
  CHECK_FALSE(fs::exists(path));
  file.write("second");
  file.commit();
  CHECK(read_file(path) == "first second");
  CHECK(folder.names() == std::vector{path.filename().string()});
}

TEST_CASE("without a commit the old file stays, with its permissions") {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.bin";
  write_file(path, "old");
  ::chmod(path.c_str(), 0640);
  {
    AtomicFile file(path.string());
    file.write("new and longer");
  }
  CHECK(read_file(path) == "old");
  CHECK(folder.names() == std::vector{path.filename().string()});
  AtomicFile file(path.string());
  file.write("new");
  file.commit();
  CHECK(read_file(path) == "new");
  CHECK((fs::status(path).permissions() & fs::perms::mask) == static_cast<fs::perms>(0640));
}

TEST_CASE("writing a file again removes what a killed writer of it left, and nothing else") {
  const TemporaryFolder folder;
  const std::string of_killed = ".tmp.99999999";  // above the largest process number there is
  write_file(folder / ("a.json" + of_killed), "half");
  write_file(folder / ("b.json" + of_killed), "another file's");
  const std::string alive = "a.json.tmp." + std::to_string(::getppid());
  write_file(folder / alive, "still being written");
  write_file_atomically(folder / "a.json", "whole");
  CHECK(folder.names() == std::vector<std::string>{"a.json", alive, "b.json" + of_killed});
}

TEST_CASE("wrong places are input errors that name the path, a full disk is failed work") {
  const TemporaryFolder folder;
  const std::string missing = folder / "none/a.bin";
  CHECK_THROWS_WITH_AS(AtomicFile{missing}, doctest::Contains("create the folder"), Error);
  CHECK_THROWS_WITH_AS(AtomicFile{folder.path()}, doctest::Contains("found a folder"), Error);
  CHECK_THROWS_WITH_AS(AtomicFile{""}, doctest::Contains("empty"), Error);
  // /dev/full refuses every write with ENOSPC; a link makes it the temporary file.
  const std::string path = folder / "full.bin";
  fs::create_symlink("/dev/full", path + ".tmp." + std::to_string(::getpid()));
  AtomicFile file(path);
  try {
    file.write("four");
    FAIL("a full disk went unnoticed");
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::work);
    CHECK(std::string(error.what()).starts_with(path + ": cannot be written: No space left on device; found "));
    CHECK(std::string(error.what()).find(" bytes free; expected at least 4 bytes; make room") != std::string::npos);
  }
  CHECK_FALSE(fs::exists(fs::symlink_status(path + ".tmp." + std::to_string(::getpid()))));
}

TEST_CASE("a disk that fails is failed work too, without advice to make room") {
  try {
    fail_disk("/a/b.bin", EIO, "1 bytes");
    FAIL("it returned");
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::work);
    CHECK(std::string(error.what()) == "/a/b.bin: cannot be written: Input/output error");
  }
}
