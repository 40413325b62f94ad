#pragma once
// What fuzz targets share: the input as a file, and the one way in which a reader may refuse it.

#include "core/error.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace minillm::fuzz {

/// A file in memory that holds the input, under a path that can be opened.
class InputFile {
 public:
  InputFile(const uint8_t* data, size_t size) : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || write(descriptor_, data, size) != static_cast<ssize_t>(size)) {
      __builtin_trap();
    }
  }
  ~InputFile() { close(descriptor_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

 private:
  int descriptor_;
};

/// Runs a reader, which takes the input or throws an Error; anything else it throws ends the program.
template <class Body>
int read_or_refuse(Body body) {
  try {
    body();
  } catch (const Error&) {
  }
  return 0;
}

}  // namespace minillm::fuzz
