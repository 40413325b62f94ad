#include "core/atomic_file.h"

#include "core/error.h"
#include "core/text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace minillm {

namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) {
    return ".";
  }
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Makes the rename itself last: without it a power cut may bring the old name back.
void sync_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    ::fsync(descriptor);  // some file systems refuse it for folders; the file itself is safe already
    ::close(descriptor);
  }
}

}  // namespace

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), temporary_(path_ + ".tmp." + std::to_string(::getpid())) {
  struct stat existing = {};
  const bool exists = ::stat(path_.c_str(), &existing) == 0;
  if (path_.empty() || (exists && !S_ISREG(existing.st_mode))) {
    fail_input({.where = path_.empty() ? "output path" : path_,
                .what = path_.empty() ? "the name is empty" : "cannot be replaced by a file",
                .found = exists && S_ISDIR(existing.st_mode) ? "a folder" : "",
                .hint = "give another name"});
  }
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    fail("cannot be created", errno);
  }
  if (exists) {
    ::fchmod(descriptor_, existing.st_mode & 07777);
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
  }
}

void AtomicFile::write(const void* data, size_t bytes) {
  check(descriptor_ >= 0, "{}: written to after its commit", path_);
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
    written_ += static_cast<size_t>(done);
  }
}

void AtomicFile::commit() {
  check(descriptor_ >= 0, "{}: committed twice", path_);
  if (::fsync(descriptor_) != 0) {
    fail("cannot be flushed to the disk", errno);
  }
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error_number = errno;
    ::unlink(temporary_.c_str());
    fail("cannot be put in place", error_number);
  }
  sync_folder(folder_of(path_));
}

void AtomicFile::fail(const char* action, int error_number) const {
  const bool disk = error_number == ENOSPC || error_number == EDQUOT || error_number == EIO || error_number == EFBIG;
  Problem problem = {.where = path_, .what = action, .found = system_error_text(error_number)};
  if (error_number == ENOENT) {
    problem.hint = "create the folder " + folder_of(path_);
  }
  struct statvfs space = {};
  if (disk && ::statvfs(folder_of(path_).c_str(), &space) == 0) {
    const double available = static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
    problem.found +=
        fmt::format(" after {}, {} left", bytes_text(static_cast<double>(written_)), bytes_text(available));
    problem.hint = "make room or choose another folder; what stood there before is untouched";
  }
  disk ? fail_work(problem) : fail_input(problem);
}

void write_file_atomically(const std::string& path, std::string_view contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

}  // namespace minillm
