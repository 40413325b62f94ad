#include "train/line_log.h"

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

namespace minillm {

namespace {

/// The size of the whole lines within the first `limit` bytes.
int64_t whole_lines(const std::string& text, int64_t limit) {
  const size_t kept = std::min(text.size(), static_cast<size_t>(limit));
  const size_t end = kept == 0 ? std::string::npos : text.rfind('\n', kept - 1);
  return end == std::string::npos ? 0 : static_cast<int64_t>(end) + 1;
}

}  // namespace

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return file ? text.str() : std::string();
}

std::vector<std::string> read_lines(const std::string& path) {
  const std::string text = read_text(path);
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

LineLog::LineLog(std::string path, int64_t keep_bytes) : path_(std::move(path)) {
  check(keep_bytes >= 0, "the size to keep of {} is at least 0, found {}", path_, keep_bytes);
  const std::string text = read_text(path_);
  bytes_ = whole_lines(text, keep_bytes);
  if (bytes_ < keep_bytes) {
    log_warning("{} holds {} of the {} bytes that the checkpoint knows: some steps are missing in it", path_, bytes_,
                keep_bytes);
  }
  file_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file_ || ftruncate(file_.get(), bytes_) != 0) {
    if (is_disk_full(errno)) {
      fail_disk(path_, errno, "");
    }
    fail_input({.where = path_, .what = "cannot be written: " + system_error_text(errno)});
  }
}

void LineLog::append(const std::string& line) {
  const std::string text = line + '\n';
  ssize_t written = -1;
  do {
    written = ::write(file_.get(), text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written != static_cast<ssize_t>(text.size())) {
    // A short write sets no error number; a full disk is what it means.
    const int error_number = written < 0 ? errno : ENOSPC;
    const bool cut = ftruncate(file_.get(), bytes_) == 0;
    fail_work({.where = path_,
               .what = "cannot be written: " + system_error_text(error_number),
               .hint = cut ? "" : "its last line is not whole; a resume cuts it off"});
  }
  bytes_ += written;
}

int64_t LineLog::sync() {
  // Pipes and some file systems cannot be flushed; only a failing disk is an error.
  if (fsync(file_.get()) != 0 && errno != EINVAL && errno != EROFS) {
    fail_work({.where = path_, .what = "cannot be written: " + system_error_text(errno)});
  }
  return bytes_;
}

}  // namespace minillm
