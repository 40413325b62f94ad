#include "core/atomic_file.h"

#include "core/error.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace minillm;
namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / ("minillm_atomic_" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The folder's one file; empty when there are more or none: nothing temporary is left.
fs::path only_file(const Folder& folder) {
  fs::path found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path)) {
    if (!found.empty()) {
      return "";
    }
    found = entry.path();
  }
  return found;
}

}  // namespace

TEST_CASE("a file appears at its commit, whole") {
  const Folder folder;
  const fs::path path = folder.path / "模型 a.bin";
  AtomicFile file(path.string());
  file.write("first ");
  CHECK_FALSE(fs::exists(path));
  file.write("second");
  file.commit();
  CHECK(content(path) == "first second");
  CHECK(only_file(folder) == path);
}

TEST_CASE("without a commit the old file stays, with its permissions") {
  const Folder folder;
  const fs::path path = folder.path / "a.bin";
  std::ofstream(path) << "old";
  ::chmod(path.c_str(), 0640);
  {
    AtomicFile file(path.string());
    file.write("new and longer");
  }
  CHECK(content(path) == "old");
  CHECK(only_file(folder) == path);
  AtomicFile file(path.string());
  file.write("new");
  file.commit();
  CHECK(content(path) == "new");
  CHECK((fs::status(path).permissions() & fs::perms::mask) == static_cast<fs::perms>(0640));
}

TEST_CASE("wrong places are input errors that name the path, a full disk is failed work") {
  const Folder folder;
  const std::string missing = (folder.path / "none" / "a.bin").string();
  CHECK_THROWS_WITH_AS(AtomicFile{missing}, doctest::Contains("create the folder"), Error);
  CHECK_THROWS_WITH_AS(AtomicFile{folder.path.string()}, doctest::Contains("found a folder"), Error);
  CHECK_THROWS_WITH_AS(AtomicFile{""}, doctest::Contains("empty"), Error);
  // /dev/full refuses every write with ENOSPC; a link makes it the temporary file.
  const std::string path = (folder.path / "full.bin").string();
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
