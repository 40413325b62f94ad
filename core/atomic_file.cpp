#include "core/atomic_file.h"

#include "core/error.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace minillm {

namespace {

/// 0, or the system's error number.
int write_all(int descriptor, std::string_view contents) {
  while (!contents.empty()) {
    const ssize_t written = ::write(descriptor, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      return errno;
    }
    contents.remove_prefix(static_cast<size_t>(written));
  }
  return fsync(descriptor) == 0 ? 0 : errno;
}

/// A rename is on the disk only once its folder is; file systems that cannot flush folders need no such thing.
void flush_folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    fsync(descriptor);
    ::close(descriptor);
  }
}

}  // namespace

void write_file_atomically(const std::string& path, std::string_view contents) {
  const std::string temporary = fmt::format("{}.tmp.{}", path, getpid());
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    fail_input({.where = path, .what = "cannot be written: " + system_error_text(errno)});
  }
  int error_number = write_all(descriptor, contents);
  if (::close(descriptor) != 0 && error_number == 0) {
    error_number = errno;
  }
  if (error_number == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) {
    error_number = errno;
  }
  if (error_number != 0) {
    ::unlink(temporary.c_str());
    fail_work({.where = path, .what = "cannot be written: " + system_error_text(error_number)});
  }
  flush_folder_of(path);
}

}  // namespace minillm
