#include "train/run_folder.h"

#include "core/atomic_file.h"
#include "core/error.h"

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

[[noreturn]] void fail_with(const std::string& folder, const std::error_code& error) {
  fail_input({.where = folder,
              .what = "the run's folder cannot be made: " + error.message(),
              .hint = "choose another with --out"});
}

}  // namespace

std::string create_run_folder(const std::string& given, bool force) {
  const std::string folder = without_slash(given);
  check(!folder.empty(), "a run needs a folder; run.out is empty");
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error)) {
    fail_input({.where = folder, .what = "is a file, a folder is needed", .hint = "choose another with --out"});
  }
  std::string moved_to;
  if (fs::is_directory(folder, error) && !fs::is_empty(folder, error)) {
    if (!force) {
      fail_input({.where = folder,
                  .what = "the run exists already",
                  .hint = fmt::format("go on with --resume {}, choose another folder with --out, or move this one to "
                                      "{} with --force",
                                      folder, free_old_name(folder))});
    }
    moved_to = free_old_name(folder);
    fs::rename(folder, moved_to, error);
    if (error) {
      fail_with(folder, error);
    }
  }
  fs::create_directories(checkpoints_path(folder), error);
  if (error) {
    fail_with(folder, error);
  }
  return moved_to;
}

void check_run_folder(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    fail_input({.where = folder, .what = "there is no such run", .expected = "the folder of a run, runs/NAME"});
  }
  if (!fs::is_regular_file(config_path(folder), error)) {
    fail_input({.where = folder, .what = "is not a run's folder: it has no config.toml"});
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
