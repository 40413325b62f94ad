#include "data/file_descriptor.h"

#include "core/error.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace minillm {

int FileDescriptor::close() {
  if (descriptor_ < 0) {
    return 0;
  }
  return ::close(std::exchange(descriptor_, -1)) == 0 ? 0 : errno;
}

FileDescriptor open_for_reading(const std::string& path) {
  // Non-blocking: opening a named pipe would wait for a writer for ever.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    fail_input({.where = path.empty() ? "\"\"" : path, .what = "cannot be opened: " + system_error_text(errno)});
  }
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    fail_input({.where = path, .what = S_ISDIR(status.st_mode) ? "is a folder, a file is needed" : "is not a file"});
  }
  return file;
}

uint64_t file_size(int descriptor, const std::string& path) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) {
    fail_work({.where = path, .what = "cannot be read: " + system_error_text(errno)});
  }
  return static_cast<uint64_t>(status.st_size);
}

size_t read_fully(int descriptor, void* into, size_t count, const std::string& path) {
  size_t done = 0;
  while (done < count) {
    const ssize_t got = ::read(descriptor, static_cast<char*>(into) + done, count - done);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      fail_work({.where = path, .what = "cannot be read: " + system_error_text(errno)});
    }
    if (got == 0) {
      break;
    }
    done += static_cast<size_t>(got);
  }
  return done;
}

void read_exactly(int descriptor, void* into, size_t count, uint64_t offset, const std::string& path) {
  size_t done = 0;
  while (done < count) {
    const ssize_t got =
        ::pread(descriptor, static_cast<char*>(into) + done, count - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      fail_work({.where = path, .what = "cannot be read: " + system_error_text(errno)});
    }
    if (got == 0) {
      fail_input({.where = path,
                  .what = "the file ends before what stands in it",
                  .found = fmt::format("the end at byte {}", offset + done),
                  .expected = fmt::format("{} more bytes", count - done),
                  .hint = "it was cut: copy it again"});
    }
    done += static_cast<size_t>(got);
  }
}

std::string read_bytes(const std::string& path, size_t most) {
  const FileDescriptor file = open_for_reading(path);
  const uint64_t size = std::min<uint64_t>(file_size(file.get(), path), most);
  std::string bytes(static_cast<size_t>(size), '\0');
  bytes.resize(read_fully(file.get(), bytes.data(), bytes.size(), path));
  return bytes;
}

}  // namespace minillm
