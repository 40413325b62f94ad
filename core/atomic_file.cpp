#include "core/atomic_file.h"

#include "core/error.h"
#include "core/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>

namespace minillm {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view temporary_mark = ".tmp.";

/// True for "*.tmp.<pid>" where no process of that number runs.
bool is_stale_temporary(const std::string& name) {
  const size_t mark = name.rfind(temporary_mark);
  if (mark == std::string::npos) {
    return false;
  }
  const char* digits = name.data() + mark + temporary_mark.size();
  const char* end = name.data() + name.size();
  pid_t process = 0;
  const auto parsed = std::from_chars(digits, end, process);
  return parsed.ec == std::errc() && parsed.ptr == end && process > 0 && kill(process, 0) != 0 && errno == ESRCH;
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), temporary_(temporary_name(path_)) {
  if (path_.empty()) {
    fail_input({.where = "output path", .what = "the name is empty", .hint = "give another name"});
  }
  check_replaceable(path_);
  remove_stale_temporaries_of(path_);
  struct stat existing = {};
  const bool exists = ::stat(path_.c_str(), &existing) == 0;
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    fail("cannot be created", errno);
  }
  if (exists) {
    ::fchmod(descriptor_, existing.st_mode & 07777);
  }
}

AtomicFile::~AtomicFile() {
  discard();
}

void AtomicFile::write(const void* data, size_t bytes) {
  check(descriptor_ >= 0, "{}: written to after its commit", path_);
  asked_for_ += bytes;
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t done = ::write(descriptor_, at, std::min(bytes, size_t{1} << 30));
    if (done < 0 && errno == EINTR) {
      continue;
    }
    if (done < 0) {
      fail("cannot be written", errno);
    }
    at += done;
    bytes -= static_cast<size_t>(done);
  }
}

void AtomicFile::commit() {
  check(descriptor_ >= 0, "{}: committed twice", path_);
  if (::fsync(descriptor_) != 0) {
    fail("cannot be flushed to the disk", errno);
  }
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) {
    const int error_number = errno;
    ::unlink(temporary_.c_str());
    fail("cannot be put in place", error_number);
  }
  if (const int error_number = put_in_place(temporary_, path_)) {
    fail("cannot be put in place", error_number);
  }
}

void AtomicFile::discard() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
    descriptor_ = -1;
  }
}

void AtomicFile::fail(const char* action, int error_number) {
  discard();
  if (is_system_failure(error_number)) {
    fail_disk(path_, error_number, fmt::format("at least {} bytes", asked_for_));
  }
  fail_input({.where = path_,
              .what = action,
              .found = system_error_text(error_number),
              .hint = error_number == ENOENT ? "create the folder " + folder_of(path_) : ""});
}

void write_file_atomically(const std::string& path, std::string_view contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

void check_replaceable(const std::string& path) {
  struct stat existing = {};
  if (::stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode)) {
    const mode_t mode = existing.st_mode;
    fail_input({.where = path,
                .what = "cannot be replaced by a file",
                .found = S_ISDIR(mode)                    ? "a folder"
                         : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
                         : S_ISFIFO(mode)                 ? "a pipe"
                                                          : "a socket",
                .hint = "give another name"});
  }
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) {
    return ".";
  }
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string without_slash(std::string folder) {
  while (folder.size() > 1 && (folder.back() == '/' || folder.ends_with("/."))) {
    folder.pop_back();
  }
  return folder;
}

std::string temporary_name(const std::string& path) {
  return path + std::string(temporary_mark) + std::to_string(::getpid());
}

int put_in_place(const std::string& temporary, const std::string& path) {
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error_number = errno;
    ::unlink(temporary.c_str());
    return error_number;
  }
  const int folder = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);  // some file systems refuse it for folders; the file itself is safe already
    ::close(folder);
  }
  return 0;
}

bool is_disk_full(int error_number) {
  return error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
}

bool is_system_failure(int error_number) {
  return is_disk_full(error_number) || error_number == EIO || error_number == EMFILE || error_number == ENFILE ||
         error_number == ENOMEM;
}

std::string advice_about_system(int error_number) {
  if (is_disk_full(error_number)) {
    return "make room or choose another folder; nothing was left behind and an older file is unchanged";
  }
  return error_number == EMFILE ? "raise the limit of open files: ulimit -n" : "";
}

void describe_room(const DiskRoom& room, int error_number, const std::string& needed, Problem& problem) {
  if (error_number == ENOSPC && !room.has_inodes) {
    problem.found =
        fmt::format("no inodes free: the file system holds as many files as it can, with {} bytes free", room.bytes);
    problem.expected = "an inode for the file";
    return;
  }
  problem.found = fmt::format("{} bytes free", room.bytes);
  problem.expected = needed;
}

void fail_disk(const std::string& path, int error_number, const std::string& needed) {
  Problem problem = {.where = path, .what = "cannot be written: " + system_error_text(error_number)};
  if (is_disk_full(error_number)) {
    struct statvfs disk = {};
    if (::statvfs(folder_of(path).c_str(), &disk) == 0) {
      const bool has_inodes = disk.f_files == 0 || disk.f_favail > 0;  // file systems without a limit say 0 of 0
      const uint64_t bytes = uint64_t{disk.f_bavail} * disk.f_frsize;
      describe_room({.bytes = bytes, .has_inodes = has_inodes}, error_number, needed, problem);
    }
  }
  problem.hint = advice_about_system(error_number);
  fail_work(problem);
}

std::vector<std::string> remove_stale_temporaries(const std::string& folder,
                                                  const std::function<bool(const std::string& name)>& is_ours) {
  std::vector<std::string> removed;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string file = entry->path().filename().string();
    std::error_code ignored;
    if (is_stale_temporary(file) && is_ours(file.substr(0, file.rfind(temporary_mark))) &&
        fs::is_regular_file(entry->symlink_status(ignored)) && unlink(entry->path().c_str()) == 0) {
      removed.push_back(entry->path().string());
      log_info("removed {}, left by a run that was killed", removed.back());
    }
  }
  return removed;
}

void remove_stale_temporaries_of(const std::string& path) {
  const std::string own_name = fs::path(path).filename().string();
  remove_stale_temporaries(folder_of(path), [&](const std::string& name) { return name == own_name; });
}

}  // namespace minillm
