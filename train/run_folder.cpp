#include "train/run_folder.h"

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/text.h"
#include "core/utf8.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>

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

/// The first by name of a folder's entries that no start leaves, or "". A start that was killed before its config was
/// written leaves temporaries and at most the checkpoint of step 0. Throws an input Error when the folder cannot be
/// listed.
std::string entry_of_no_start(const std::string& folder) {
  std::string first;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code vanished;
    const bool checkpoints = name == "checkpoints" && entry->is_directory(vanished);
    const bool of_a_start = name == "step_000000.h5" || name.find(".tmp.") != std::string::npos;
    const bool is_other = checkpoints ? !entry_of_no_start(entry->path().string()).empty() : !of_a_start;
    if (is_other && (first.empty() || name < first)) {
      first = name;
    }
  }
  if (error) {
    fail_input({.where = folder,
                .what = "the folder cannot be listed: " + error.message(),
                .hint = "choose another with --out"});
  }
  return first;
}

[[noreturn]] void fail_with(const std::string& folder, const std::error_code& error) {
  if (is_disk_full(error.value())) {
    fail_disk(folder, error.value(), "");
  }
  fail_input({.where = folder,
              .what = "the run's folder cannot be made: " + error.message(),
              .hint = "choose another with --out"});
}

/// Whether `path`, or a link on the way to it, lies in `folder` or is the folder: its name leads nowhere, or elsewhere,
/// when the folder moves. A ".." is followed as the system does, from where the link before it leads; one right behind
/// the folder itself leads on as before, since a new folder takes its place.
bool is_inside(const std::string& path, const std::string& folder) {
  std::error_code error;
  const fs::path whole = fs::canonical(folder, error);
  if (error) {
    return false;  // there is no folder to lie in
  }
  fs::path prefix;
  const fs::path parts = fs::absolute(path, error);
  for (auto part = parts.begin(); part != parts.end(); ++part) {
    prefix /= *part;
    const fs::path real = fs::canonical(prefix, error);
    const bool leads_out = real == whole && std::next(part) != parts.end() && *std::next(part) == "..";
    const bool is_below = std::mismatch(whole.begin(), whole.end(), real.begin(), real.end()).first == whole.end();
    if (!error && is_below && !leads_out) {
      return true;
    }
  }
  return false;
}

/// The first input that lies in the folder, or "".
std::string input_inside(const FolderRequest& request, const std::string& folder) {
  for (const std::string& input : request.inputs) {
    if (!input.empty() && is_inside(input, folder)) {
      return input;
    }
  }
  return "";
}

void check_is_run(const std::string& folder) {
  std::error_code error;
  if (!fs::is_regular_file(config_path(folder), error)) {
    fail_input({.where = folder,
                .what = "is a folder with other files, not a run",
                .found = printable(entry_of_no_start(folder)) + " and no config.toml",
                .hint = "choose another with --out"});
  }
}

[[noreturn]] void fail_exists(const FolderRequest& request, const std::string& folder) {
  check_is_run(folder);
  std::vector<std::string> ways;
  if (const std::string advice = request.advice != nullptr ? request.advice(folder) : ""; !advice.empty()) {
    ways.push_back(advice);
  }
  ways.emplace_back("choose another folder with --out");
  if (input_inside(request, folder).empty()) {
    ways.push_back(fmt::format("or move this one to {} with --force", free_old_name(folder)));
  }
  fail_input({.where = folder, .what = "the run exists already", .hint = join(ways)});
}

/// What --force does: the run gets another name.
std::string move_aside(const std::string& folder) {
  check_is_run(folder);
  const FileDescriptor lock = lock_run_folder(folder);  // a run that is under way would go on in both
  std::string old_name = free_old_name(folder);
  std::error_code error;
  fs::rename(folder, old_name, error);
  if (error) {
    fail_with(folder, error);
  }
  return old_name;
}

}  // namespace

OwnedFolder create_run_folder(const FolderRequest& request) {
  const std::string folder = without_slash(request.folder);
  check(!folder.empty(), "a run needs a folder; run.out is empty");
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error)) {
    fail_input({.where = folder, .what = "is a file, a folder is needed", .hint = "choose another with --out"});
  }
  const bool is_taken = fs::is_directory(folder, error) && !entry_of_no_start(folder).empty();
  if (is_taken && !request.force) {
    fail_exists(request, folder);
  }
  if (const std::string input = input_inside(request, folder); !input.empty()) {
    fail_input({.where = folder,
                .what = "a file that the command reads lies in the folder it would replace",
                .found = printable(input),
                .hint = "choose another folder with --out"});
  }
  OwnedFolder owned;
  if (is_taken) {
    owned.moved_to = move_aside(folder);
  }
  fs::create_directories(checkpoints_path(folder), error);
  if (error) {
    fail_with(folder, error);
  }
  owned.lock = lock_run_folder(folder);
  if (!entry_of_no_start(folder).empty()) {  // between the look and the lock another process began and ended
    fail_exists(request, folder);
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

void check_folder_name(const std::string& folder) {
  if (const std::string valid = valid_utf8(folder); valid != folder) {
    fail_input({.where = "--out",
                .what = "the folder's name is not UTF-8, which config.toml, where it is recorded, must be",
                .found = printable(valid),
                .hint = "choose another"});
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
