#pragma once
// A file of lines that only grows: each line is one write, and a resume cuts off what was written after its checkpoint.

#include "data/file_descriptor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace minillm {

class LineLog {
 public:
  /// Opens or makes the file and keeps at most its first `keep_bytes` (0 for a new run), up to a line end. A file that
  /// is shorter is kept as it is, with a warning.
  LineLog(std::string path, int64_t keep_bytes);

  /// Appends `line` and a line end. A disk that fills is a work Error and leaves no part of the line.
  void append(const std::string& line);

  /// Flushes to the disk and returns the file's size: what a checkpoint stores.
  int64_t sync();

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  FileDescriptor file_;
  int64_t bytes_ = 0;
};

/// The lines of a file without their ends; an unfinished last one (a writer is at work) is left out. None when there is
/// no file.
std::vector<std::string> read_lines(const std::string& path);

/// The whole text of a file; "" when there is none.
std::string read_text(const std::string& path);

}  // namespace minillm
