#include "train/run_folder.h"

#include "core/error.h"
#include "tests/support/limits.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"
#include "train/checkpoint.h"

#include <doctest/doctest.h>

using namespace minillm;
using namespace minillm::test;

namespace {

std::string refusal(const FolderRequest& request, Fault fault = Fault::input) {
  try {
    create_run_folder(request);
  } catch (const Error& error) {
    CHECK(error.fault() == fault);
    return error.what();
  }
  return "";
}

/// A file of the kind and under the name that a start leaves when it is killed before its config; returns its bytes.
std::string write_first_checkpoint(const std::string& run) {
  std::filesystem::create_directories(checkpoints_path(run));
  const std::string path = checkpoint_path(run, 0);
  H5Writer writer(path, {.name = std::string(checkpoint_format_name), .version = 1, .remedy = ""});
  writer.write_bytes("/config", "");
  writer.commit();
  return read_file(path);
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
  folder.write("c/config.toml.tmp.1", "");
  folder.write("c/notes.txt", "");
  CHECK_CONTAINS(refusal({.folder = folder / "c"}), "not a run; found metrics.jsonl");
  CHECK(folder.names() == std::vector<std::string>{"a", "b", "c"});
  CHECK_FALSE(std::filesystem::exists(folder / "a/checkpoints"));
}

TEST_CASE("a config.toml alone makes no run: other programs have one too") {
  TemporaryFolder folder;
  folder.write("site/config.toml", "title = 'my site'");
  folder.write("site/src/a.c", "code");
  std::filesystem::create_directories(folder / "odd/config.toml");
  folder.write("metrics/config.toml", "");
  folder.write("metrics/metrics.jsonl", "");
  folder.write("checkpoints/config.toml", "");
  std::filesystem::create_directory(folder / "checkpoints/checkpoints");
  for (const bool force : {false, true}) {
    CHECK(refusal({.folder = folder / "site", .force = force}) ==
          folder /
              "site: is a folder with other files, not a run; found config.toml and neither checkpoints nor "
              "metrics.jsonl; choose another with --out");
    CHECK_CONTAINS(refusal({.folder = folder / "odd", .force = force}),
                   "not a run; found config.toml, which is no file; choose another with --out");
  }
  CHECK(read_file(folder / "site/src/a.c") == "code");
  for (const std::string name : {"metrics", "checkpoints"}) {
    CHECK_CONTAINS(refusal({.folder = folder / name}), "the run exists already");
    CHECK(create_run_folder({.folder = folder / name, .force = true}).moved_to == (folder / name) + ".old");
  }
}

TEST_CASE("of a killed start only its own files are taken for such, and removed") {
  TemporaryFolder folder;
  const std::string first = write_first_checkpoint(folder / "start");
  folder.write("start/config.toml.tmp.123", "half");
  folder.write("start/checkpoints/step_000000.h5.tmp.123", "half");
  CHECK(create_run_folder({.folder = folder / "start"}).moved_to.empty());
  CHECK_FALSE(std::filesystem::exists(checkpoint_path(folder / "start", 0)));
  // A file of that name that is no checkpoint, a link to one, names like a temporary's, a folder of such a name.
  folder.write("text/checkpoints/step_000000.h5", "precious");
  std::filesystem::create_directories(folder / "link/checkpoints");
  folder.write("real.h5", first);
  std::filesystem::create_symlink(folder / "real.h5", checkpoint_path(folder / "link", 0));
  folder.write("thesis/thesis.tmp.1", "precious");
  folder.write("letters/config.toml.tmp.x", "precious");
  folder.write("folder/config.toml.tmp.1/thesis.txt", "precious");
  folder.write("above/step_000000.h5", first);
  folder.write("nested/checkpoints/checkpoints/step_000000.h5", first);
  for (const std::string name : {"text", "link", "thesis", "letters", "folder", "above", "nested"}) {
    CAPTURE(name);
    for (const bool force : {false, true}) {
      CHECK_CONTAINS(refusal({.folder = folder / name, .force = force}), ": is a folder with other files, not a run; ");
    }
  }
  CHECK(read_file(folder / "text/checkpoints/step_000000.h5") == "precious");
  CHECK(std::filesystem::is_symlink(checkpoint_path(folder / "link", 0)));
  CHECK(read_file(folder / "folder/config.toml.tmp.1/thesis.txt") == "precious");
}

TEST_CASE("a run is moved aside by its name, and a way to it without one is told it") {
  TemporaryFolder folder;
  const std::string run = std::filesystem::canonical(folder.path()).string() + "/a";
  folder.write("a/config.toml", "mine");
  folder.write("a/checkpoints/best.h5", "mine");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(run);
  const std::string way = "move this one to " + run + ".old with --force and its own name, --out " + run;
  for (const std::string name : {".", "./", "checkpoints/..", "checkpoints/../."}) {
    CAPTURE(name);
    CHECK_CONTAINS(refusal({.folder = name}), "the run exists already; choose another folder with --out, or " + way);
    CHECK_CONTAINS(refusal({.folder = name, .force = true}),
                   ": the run cannot be moved aside: this is a way to it, not its name; " + way);
  }
  // The advice holds, also from inside.
  const std::string moved_to = create_run_folder({.folder = run, .force = true}).moved_to;
  std::filesystem::current_path(before);
  CHECK(moved_to == run + ".old");
  CHECK(read_file(run + ".old/checkpoints/best.h5") == "mine");
  folder.write("a/config.toml", "second");
  CHECK_CONTAINS(refusal({.folder = run + "/."}), run +
                                                      ": the run exists already; choose another folder with --out, or "
                                                      "move this one to " +
                                                      run + ".old.2 with --force");
  const OwnedFolder again = create_run_folder({.folder = run + "/./", .force = true});
  CHECK(again.path == run);
  CHECK(again.moved_to == run + ".old.2");
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
        message = refusal({.folder = folder / name, .force = force}, Fault::work);
      }
      CHECK(message ==
            (folder / name) +
                ": the folder cannot be listed: Too many open files; raise the limit of open files: ulimit -n");
    }
  }
  CHECK(folder.names() == std::vector<std::string>{"a", "empty"});
  CHECK(std::filesystem::is_empty(folder / "empty"));
}

TEST_CASE("a folder that an input of the command lies in is not replaced") {
  TemporaryFolder folder;
  folder.write("a/config.toml", "mine");
  folder.write("a/metrics.jsonl", "");
  folder.write("a/sub/data.h5", "mine");
  folder.write("outside/data.h5", "mine");
  std::filesystem::create_symlink(folder / "outside/data.h5", folder / "a/link.h5");
  std::filesystem::create_directory_symlink(folder / "outside", folder / "a/elsewhere");
  std::filesystem::create_directory_symlink(folder / "a", folder / "alias");
  std::filesystem::create_directory_symlink(folder / "a/sub", folder / "outside/below");
  std::filesystem::create_symlink("../outside/data.h5", folder / "a/out.h5");  // in and out again
  std::filesystem::create_symlink("a/out.h5", folder / "chain.h5");
  std::filesystem::create_symlink(folder / "chain.h5", folder / "outside/longer.h5");
  const std::string expected = folder / "a: a file that the command reads lies in the folder it would replace; found ";
  for (const std::string name :
       {"a/sub/data.h5", "a/sub/../sub/data.h5", "a", "a/", "alias/sub/data.h5", "a/link.h5", "a/elsewhere/data.h5",
        "outside/../a/config.toml", "outside/below/../config.toml", "outside/below/../../outside/data.h5",
        "a/elsewhere/../outside/data.h5", "chain.h5", "outside/longer.h5"}) {
    CAPTURE(name);
    const FolderRequest request = {.folder = folder / "a", .force = true, .inputs = {"", folder / name}};
    CHECK(refusal(request) == expected + (folder / name) + "; choose another folder with --out");
  }
  // Without --force the way that would be refused next is not named.
  CHECK(refusal({.folder = folder / "a", .inputs = {folder / "a/config.toml"}}) ==
        folder / "a: the run exists already; choose another folder with --out");
  CHECK(folder.names() == std::vector<std::string>{"a", "alias", "chain.h5", "outside"});
  // A killed start's folder is taken over, its checkpoint of step 0 removed.
  const std::string first = write_first_checkpoint(folder / "start");
  CHECK_CONTAINS(refusal({.folder = folder / "start", .inputs = {folder / "start/checkpoints/step_000000.h5"}}),
                 "lies in the folder");
  CHECK(read_file(folder / "start/checkpoints/step_000000.h5") == first);
  std::filesystem::create_symlink("loop.h5", folder / "loop.h5");
  for (const std::string name :
       {"outside/data.h5", "a/../outside/data.h5", "a/./../outside/data.h5", "a2", "none", "loop.h5", "loop.h5/.."}) {
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
