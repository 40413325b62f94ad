#include "train/run_folder.h"

#include "core/error.h"
#include "tests/support/temporary_folder.h"

#include <doctest/doctest.h>

using namespace minillm;
using namespace minillm::test;

namespace {

std::string refusal(const std::string& folder) {
  try {
    create_run_folder(folder, false);
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::input);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a new run gets its folder, whatever its name") {
  TemporaryFolder folder;
  for (const std::string name : {"runs/a", "模型 é/a b", "line\nend"}) {
    CHECK(create_run_folder(folder / name, false).moved_to.empty());
    CHECK(std::filesystem::is_directory(checkpoints_path(folder / name)));
    write_run_config(folder / name, "[train]\n");
    CHECK(read_file(config_path(folder / name)) == "[train]\n");
    check_run_folder(folder / name);
  }
}

TEST_CASE("an existing run is refused, and moved aside only by force") {
  TemporaryFolder folder;
  const std::string run = folder / "a";
  create_run_folder(run, false);
  folder.write("a/config.toml", "first");
  CHECK(refusal(run + "/") == run + ": the run exists already; go on with --resume " + run +
                                  ", choose another folder with --out, or move this one to " + run +
                                  ".old with --force");
  CHECK_THROWS_WITH_AS(create_run_folder(run, false, false),
                       (run + ": the run exists already; choose another folder with --out, or move this one to " + run +
                        ".old with --force")
                           .c_str(),
                       Error);
  CHECK(read_file(run + "/config.toml") == "first");
  CHECK(create_run_folder(run + "/", true).moved_to == run + ".old");
  CHECK(read_file(run + ".old/config.toml") == "first");
  folder.write("a/config.toml", "second");
  CHECK(create_run_folder(run, true).moved_to == run + ".old.2");
  folder.write("a/config.toml", "third");
  CHECK(create_run_folder(run, true).moved_to == run + ".old.3");
  CHECK(read_file(run + ".old/config.toml") == "first");
  CHECK(read_file(run + ".old.2/config.toml") == "second");
  CHECK_FALSE(std::filesystem::exists(run + "/config.toml"));
}

TEST_CASE("an empty folder is free, a file or a place below one is not") {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "empty");
  CHECK(refusal(folder / "empty").empty());
  folder.write("file", "x");
  CHECK(refusal(folder / "file").find("is a file, a folder is needed") != std::string::npos);
  CHECK(refusal(folder / "file/run").find("cannot be made") != std::string::npos);
  CHECK(refusal("").find("run.out is empty") != std::string::npos);
}

TEST_CASE("a folder that is no run's is told apart from one that is missing") {
  TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(check_run_folder(folder.path()),
                       (folder.path() + ": is not a run's folder: it has no config.toml; a run killed before its first "
                                        "step leaves such a folder: start it again")
                           .c_str(),
                       Error);
  CHECK_THROWS_WITH_AS(check_run_folder(folder / "b"),
                       (folder / "b: there is no such run; expected the folder of a run, runs/NAME").c_str(), Error);
}
