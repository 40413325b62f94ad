#include "train/run_folder.h"

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/text.h"
#include "core/utf8.h"
#include "data/user_block.h"
#include "train/checkpoint.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace minillm {

namespace fs = std::filesystem;

namespace {

/// Whether the name says how to get there and not what the folder is called: "." and "..". It cannot be renamed by
/// that, and leads elsewhere when it was.
bool is_way(const std::string& folder) {
  const fs::path last = fs::path(folder).filename();
  return last == "." || last == "..";
}

std::string free_old_name(const std::string& folder) {
  std::string name = folder + ".old";
  for (int i = 2; fs::exists(fs::symlink_status(name)); ++i) {
    name = fmt::format("{}.old.{}", folder, i);
  }
  return name;
}

/// Whether a name is `<file>.tmp.<number>`, as the writer of `file` calls its temporary.
bool is_temporary_of(std::string_view file, std::string_view name) {
  const std::string start = std::string(file) + ".tmp.";
  return name.starts_with(start) && name.size() > start.size() &&
         name.find_first_not_of("0123456789", start.size()) == std::string_view::npos;
}

/// A checkpoint by its header, not by its name alone.
bool is_checkpoint(const fs::path& path) {
  try {
    return format_of(read_bytes(path.string(), UserBlock::size)) == checkpoint_format_name;
  } catch (const Error&) {
    return false;  // what cannot be read is not known to be ours
  }
}

/// Whether a killed start leaves such an entry in `folder`, or in checkpoints/ when that is where it stands.
bool is_left_by_start(const fs::directory_entry& entry, bool in_checkpoints) {
  std::error_code error;
  const fs::file_status status = entry.symlink_status(error);
  const std::string name = entry.path().filename().string();
  if (!in_checkpoints) {
    const bool is_temporary = fs::is_regular_file(status) && is_temporary_of("config.toml", name);
    return is_temporary || !fs::exists(status);  // one that has vanished meanwhile is none
  }
  const std::string first = fs::path(checkpoint_path("", 0)).filename().string();
  const bool is_ours = is_temporary_of(first, name) || (name == first && is_checkpoint(entry.path()));
  return (fs::is_regular_file(status) && is_ours) || !fs::exists(status);
}

/// The first by name of a folder's entries that no start leaves, or "". A start that was killed before its config was
/// written leaves temporaries and at most the checkpoint of step 0. Throws an input Error when the folder cannot be
/// listed.
std::string entry_of_no_start(const std::string& folder, bool in_checkpoints = false) {
  std::string first;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code vanished;
    const bool is_checkpoints = !in_checkpoints && name == "checkpoints" && entry->is_directory(vanished);
    const bool is_left = is_checkpoints ? entry_of_no_start(entry->path().string(), true).empty()
                                        : is_left_by_start(*entry, in_checkpoints);
    if (!is_left && (first.empty() || name < first)) {
      first = name;
    }
  }
  if (error) {
    Problem problem = {.where = folder, .what = "the folder cannot be listed: " + error.message()};
    if (is_system_failure(error.value())) {
      problem.hint = advice_about_system(error.value());
      fail_work(problem);
    }
    problem.hint = "choose another with --out";
    fail_input(problem);
  }
  return first;
}

[[noreturn]] void fail_with(const std::string& folder, const std::error_code& error) {
  if (is_system_failure(error.value())) {
    fail_disk(folder, error.value(), "");
  }
  fail_input({.where = folder,
              .what = "the run's folder cannot be made: " + error.message(),
              .hint = "choose another with --out"});
}

/// Puts the parts of a path in front of what is still to be walked; the next one stands last.
void push_parts(const fs::path& path, std::vector<fs::path>& ahead) {
  std::vector<fs::path> parts(path.begin(), path.end());
  std::reverse(parts.begin(), parts.end());
  for (const fs::path& part : parts) {
    if (!part.empty() && part != ".") {
      ahead.push_back(part);
    }
  }
}

/// Whether `path`, or a link on the way to it, lies in `folder` or is the folder: its name leads nowhere, or elsewhere,
/// when the folder moves. The way is walked as the system does, link by link; a ".." right behind the folder itself
/// leads on as before, since a new folder takes its place.
bool is_inside(const std::string& path, const std::string& folder) {
  constexpr int most_links = 64;  // more than any system follows
  std::error_code error;
  const fs::path whole = fs::canonical(folder, error);
  if (error) {
    return false;  // there is no folder to lie in
  }
  std::vector<fs::path> ahead;
  push_parts(fs::absolute(path, error), ahead);
  fs::path at;  // so far, free of links
  for (int links = 0; !ahead.empty();) {
    const fs::path part = ahead.back();
    ahead.pop_back();
    if (part == "..") {
      at = at.parent_path();
      continue;
    }
    const fs::path next = at / part;
    const bool is_below = std::mismatch(whole.begin(), whole.end(), next.begin(), next.end()).first == whole.end();
    const bool leads_out = next == whole && !ahead.empty() && ahead.back() == "..";
    if (is_below && !leads_out) {
      return true;
    }
    const fs::path target = fs::read_symlink(next, error);
    if (error || ++links > most_links) {
      at = next;
    } else {
      push_parts(target, ahead);
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

/// Throws an input Error unless a run stands in the folder. Other programs have a config.toml too: beside a run's
/// stands what a run writes.
void check_is_run(const std::string& folder) {
  std::error_code error;
  const fs::file_status config = fs::status(config_path(folder), error);
  const bool has_work =
      fs::is_directory(checkpoints_path(folder), error) || fs::is_regular_file(metrics_path(folder), error);
  if (fs::is_regular_file(config) && has_work) {
    return;
  }
  std::string found = printable(entry_of_no_start(folder)) + " and no config.toml";
  if (fs::exists(config)) {
    found = fs::is_regular_file(config) ? "config.toml and neither checkpoints nor metrics.jsonl"
                                        : "config.toml, which is no file";
  }
  fail_input({.where = folder,
              .what = "is a folder with other files, not a run",
              .found = found,
              .hint = "choose another with --out"});
}

/// How an existing run is moved aside, for a hint.
std::string way_to_move(const std::string& folder) {
  if (!is_way(folder)) {
    return fmt::format("move this one to {} with --force", free_old_name(folder));
  }
  std::error_code error;
  const std::string name = fs::canonical(folder, error).string();
  return fmt::format("move this one to {} with --force and its own name, --out {}", free_old_name(name),
                     shell_word(name));
}

[[noreturn]] void fail_exists(const FolderRequest& request, const std::string& folder) {
  check_is_run(folder);
  std::vector<std::string> ways;
  if (const std::string advice = request.advice != nullptr ? request.advice(folder) : ""; !advice.empty()) {
    ways.push_back(advice);
  }
  ways.emplace_back("choose another folder with --out");
  if (input_inside(request, folder).empty()) {
    ways.push_back("or " + way_to_move(folder));
  }
  fail_input({.where = folder, .what = "the run exists already", .hint = join(ways)});
}

/// What --force does: the run gets another name.
std::string move_aside(const std::string& folder) {
  check_is_run(folder);
  if (is_way(folder)) {
    fail_input({.where = folder,
                .what = "the run cannot be moved aside: this is a way to it, not its name",
                .hint = way_to_move(folder) + ", or choose another folder"});
  }
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
  if (fs::is_symlink(fs::symlink_status(folder, error)) && !fs::exists(folder, error)) {
    fail_input(
        {.where = folder, .what = "is a link to a folder that does not exist", .hint = "choose another with --out"});
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
  owned.path = folder;
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
  fs::remove(checkpoint_path(folder, 0), error);  // a killed start's, with other weights
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
                .hint = fs::is_regular_file(folder_of(without_slash(folder)) + "/config.toml", error)
                            ? "the run is " + folder_of(without_slash(folder))
                            : "a run killed before its first step leaves such a folder: start it again"});
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

std::string layers_path(const std::string& folder) {
  return without_slash(folder) + "/layers.json";
}

std::string checkpoints_path(const std::string& folder) {
  return without_slash(folder) + "/checkpoints";
}

bool is_replaced_whole(const std::string& name) {
  const std::string path = "/" + name;
  return path == config_path("") || path == summary_path("") || path == layers_path("");
}

void write_run_config(const std::string& folder, std::string_view toml) {
  write_file_atomically(config_path(folder), toml);
}

}  // namespace minillm
