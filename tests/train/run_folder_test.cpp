#include "train/run_folder.h"

#include "core/error.h"
#include "tests/support/limits.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

#include <doctest/doctest.h>

using namespace minillm;
using namespace minillm::test;

namespace {

std::string refusal(const FolderRequest& request) {
  try {
    create_run_folder(request);
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
    CHECK(create_run_folder({.folder = folder / name}).moved_to.empty());
    CHECK(std::filesystem::is_directory(checkpoints_path(folder / name)));
    write_run_config(folder / name, "[train]\n");
    CHECK(read_file(config_path(folder / name)) == "[train]\n");
    check_run_folder(folder / name);
  }
}

TEST_CASE("an existing run is refused, and moved aside only by force") {
  TemporaryFolder folder;
  const std::string run = folder / "a";
  create_run_folder({.folder = run});
  folder.write("a/config.toml", "first");
  const std::string ways = "choose another folder with --out, or move this one to " + run + ".old with --force";
  CHECK(refusal({.folder = run}) == run + ": the run exists already; " + ways);
  CHECK(refusal({.folder = run + "/", .advice = [](const std::string& name) { return "look into " + name; }}) ==
        run + ": the run exists already; look into " + run + ", " + ways);
  CHECK(refusal({.folder = run, .advice = [](const std::string&) { return std::string(); }}) ==
        run + ": the run exists already; " + ways);  // no advice leaves no gap
  CHECK(read_file(run + "/config.toml") == "first");
  CHECK(create_run_folder({.folder = run + "/", .force = true}).moved_to == run + ".old");
  CHECK(read_file(run + ".old/config.toml") == "first");
  folder.write("a/config.toml", "second");
  CHECK(create_run_folder({.folder = run, .force = true}).moved_to == run + ".old.2");
  folder.write("a/config.toml", "third");
  CHECK(create_run_folder({.folder = run, .force = true}).moved_to == run + ".old.3");
  CHECK(read_file(run + ".old/config.toml") == "first");
  CHECK(read_file(run + ".old.2/config.toml") == "second");
  CHECK_FALSE(std::filesystem::exists(run + "/config.toml"));
}

TEST_CASE("a folder with other files and no config is no run: never written to, never moved") {
  TemporaryFolder folder;
  folder.write("a/thesis.txt", "mine");
  folder.write("b/checkpoints/step_000500.h5", "mine");
  folder.write("c/metrics.jsonl", "");
  for (const bool force : {false, true}) {
    CHECK(refusal({.folder = folder / "a", .force = force}) ==
          folder /
              "a: is a folder with other files, not a run; found thesis.txt and no config.toml; choose another "
              "with --out");
    CHECK_CONTAINS(refusal({.folder = folder / "b", .force = force}), "found checkpoints and no config.toml");
    CHECK_CONTAINS(refusal({.folder = folder / "c", .force = force}), "not a run; found metrics.jsonl");
  }
  // Of several, the first by name that is not a start's own; a killed start's temporaries are.
  folder.write("c/best.h5.tmp.1", "");
  folder.write("c/notes.txt", "");
  CHECK_CONTAINS(refusal({.folder = folder / "c"}), "not a run; found metrics.jsonl");
  CHECK(folder.names() == std::vector<std::string>{"a", "b", "c"});
  CHECK_FALSE(std::filesystem::exists(folder / "a/checkpoints"));
}

TEST_CASE("of a folder that cannot be listed the message says so, and not what would be in it") {
  TemporaryFolder folder;
  folder.write("a/thesis.txt", "mine");
  std::filesystem::create_directory(folder / "empty");
  for (const std::string name : {"a", "empty"}) {
    for (const bool force : {false, true}) {
      std::string message;
      {
        const ResourceLimit no_more_files(RLIMIT_NOFILE, 3);
        message = refusal({.folder = folder / name, .force = force});
      }
      CHECK(message ==
            (folder / name) + ": the folder cannot be listed: Too many open files; choose another with --out");
    }
  }
  CHECK(folder.names() == std::vector<std::string>{"a", "empty"});
  CHECK(std::filesystem::is_empty(folder / "empty"));
}

TEST_CASE("a folder that an input of the command lies in is not replaced") {
  TemporaryFolder folder;
  folder.write("a/config.toml", "mine");
  folder.write("a/sub/data.h5", "mine");
  folder.write("outside/data.h5", "mine");
  std::filesystem::create_symlink(folder / "outside/data.h5", folder / "a/link.h5");
  std::filesystem::create_directory_symlink(folder / "outside", folder / "a/elsewhere");
  std::filesystem::create_directory_symlink(folder / "a", folder / "alias");
  std::filesystem::create_directory_symlink(folder / "a/sub", folder / "outside/below");
  const std::string expected = folder / "a: a file that the command reads lies in the folder it would replace; found ";
  for (const std::string name : {"a/sub/data.h5", "a/sub/../sub/data.h5", "a", "a/", "alias/sub/data.h5", "a/link.h5",
                                 "a/elsewhere/data.h5", "outside/../a/config.toml", "outside/below/../config.toml",
                                 "outside/below/../../outside/data.h5", "a/elsewhere/../outside/data.h5"}) {
    CAPTURE(name);
    const FolderRequest request = {.folder = folder / "a", .force = true, .inputs = {"", folder / name}};
    CHECK(refusal(request) == expected + (folder / name) + "; choose another folder with --out");
  }
  // Without --force the way that would be refused next is not named.
  CHECK(refusal({.folder = folder / "a", .inputs = {folder / "a/config.toml"}}) ==
        folder / "a: the run exists already; choose another folder with --out");
  CHECK(folder.names() == std::vector<std::string>{"a", "alias", "outside"});
  // A killed start's folder is taken over, its checkpoint of step 0 removed.
  folder.write("start/checkpoints/step_000000.h5", "mine");
  CHECK_CONTAINS(refusal({.folder = folder / "start", .inputs = {folder / "start/checkpoints/step_000000.h5"}}),
                 "lies in the folder");
  CHECK(read_file(folder / "start/checkpoints/step_000000.h5") == "mine");
  for (const std::string name : {"outside/data.h5", "a/../outside/data.h5", "a2", "none"}) {
    CAPTURE(name);
    folder.write("a/config.toml", "mine");
    CHECK(create_run_folder({.folder = folder / "a", .force = true, .inputs = {folder / name}}).moved_to != "");
  }
}

TEST_CASE("an empty folder is free, a file or a place below one is not") {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "empty");
  CHECK(refusal({.folder = folder / "empty"}).empty());
  folder.write("file", "x");
  CHECK(refusal({.folder = folder / "file"}).find("is a file, a folder is needed") != std::string::npos);
  CHECK(refusal({.folder = folder / "file/run"}).find("cannot be made") != std::string::npos);
  CHECK(refusal({.folder = ""}).find("run.out is empty") != std::string::npos);
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
