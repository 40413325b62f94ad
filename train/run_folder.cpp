#include "train/run_folder.h"

#include "core/atomic_file.h"
#include "core/error.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>

namespace minillm {

namespace fs = std::filesystem;

namespace {

/// "runs/a/" and "runs/a" are one folder.
std::string without_slash(std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') {
    folder.pop_back();
  }
  return folder;
}

std::string free_old_name(const std::string& folder) {
  std::string name = folder + ".old";
  for (int i = 2; fs::exists(fs::symlink_status(name)); ++i) {
    name = fmt::format("{}.old.{}", folder, i);
  }
  return name;
}

/// Whether every entry of a folder is one of a start: a start that was killed before its config was written leaves
/// temporaries and at most the checkpoint of step 0.
bool holds_only_a_start(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool checkpoints = name == "checkpoints" && entry->is_directory(error);
    const bool of_a_start = name == "step_000000.h5" || name.find(".tmp.") != std::string::npos;
    if (checkpoints ? !holds_only_a_start(entry->path().string()) : !of_a_start) {
      return false;
    }
  }
  return !error;
}

[[noreturn]] void fail_with(const std::string& folder, const std::error_code& error) {
  if (is_disk_full(error.value())) {
    fail_disk(folder, error.value(), "");
  }
  fail_input({.where = folder,
              .what = "the run's folder cannot be made: " + error.message(),
              .hint = "choose another with --out"});
}

[[noreturn]] void fail_exists(const std::string& folder, bool may_resume) {
  fail_input(
      {.where = folder,
       .what = "the run exists already",
       .hint = fmt::format("{}choose another folder with --out, or move this one to {} with --force",
                           may_resume ? fmt::format("go on with --resume {}, ", folder) : "", free_old_name(folder))});
}

}  // namespace

OwnedFolder create_run_folder(const std::string& given, bool force, bool may_resume) {
  const std::string folder = without_slash(given);
  check(!folder.empty(), "a run needs a folder; run.out is empty");
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error)) {
    fail_input({.where = folder, .what = "is a file, a folder is needed", .hint = "choose another with --out"});
  }
  OwnedFolder owned;
  if (fs::is_directory(folder, error) && !holds_only_a_start(folder)) {
    if (!force) {
      fail_exists(folder, may_resume);
    }
    const FileDescriptor lock = lock_run_folder(folder);  // a run that is under way would go on in both
    owned.moved_to = free_old_name(folder);
    fs::rename(folder, owned.moved_to, error);
    if (error) {
      fail_with(folder, error);
    }
  }
  fs::create_directories(checkpoints_path(folder), error);
  if (error) {
    fail_with(folder, error);
  }
  owned.lock = lock_run_folder(folder);
  if (!holds_only_a_start(folder)) {  // between the look and the lock another process began and ended
    fail_exists(folder, may_resume);
  }
  fs::remove(checkpoints_path(folder) + "/step_000000.h5", error);  // a killed start's, with other weights
  if (error) {
    fail_with(folder, error);
  }
  return owned;
}

FileDescriptor lock_run_folder(const std::string& folder) {
  FileDescriptor lock(::open(without_slash(folder).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Where folders cannot be locked (some network file systems) runs go unguarded.
  if (lock && flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    fail_input({.where = folder,
                .what = "another process is training in this folder",
                .hint = "wait for it, or choose another folder with --out"});
  }
  return lock;
}

void check_run_folder(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    fail_input({.where = folder, .what = "there is no such run", .expected = "the folder of a run, runs/NAME"});
  }
  if (!fs::is_regular_file(config_path(folder), error)) {
    fail_input({.where = folder,
                .what = "is not a run's folder: it has no config.toml",
                .hint = "a run killed before its first step leaves such a folder: start it again"});
  }
}

std::string config_path(const std::string& folder) {
  return without_slash(folder) + "/config.toml";
}

std::string metrics_path(const std::string& folder) {
  return without_slash(folder) + "/metrics.jsonl";
}

std::string samples_path(const std::string& folder) {
  return without_slash(folder) + "/samples.jsonl";
}

std::string summary_path(const std::string& folder) {
  return without_slash(folder) + "/summary.json";
}

std::string checkpoints_path(const std::string& folder) {
  return without_slash(folder) + "/checkpoints";
}

void write_run_config(const std::string& folder, std::string_view toml) {
  write_file_atomically(config_path(folder), toml);
}

}  // namespace minillm
