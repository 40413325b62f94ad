#pragma once
// An owned POSIX file descriptor, and reads that end in an Error instead of a short count.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace minillm {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~FileDescriptor() { close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

  /// 0, or the system's error number: NFS and quotas report a full disk only here.
  int close();

 private:
  int descriptor_ = -1;
};

/// Opens a regular file; throws an input Error when it is missing, a folder, a device or not readable.
FileDescriptor open_for_reading(const std::string& path);

uint64_t file_size(int descriptor, const std::string& path);

/// Reads until `count` bytes or the end of the file; returns how many. Throws a work Error when the disk fails.
size_t read_fully(int descriptor, void* into, size_t count, const std::string& path);

/// Reads `count` bytes from `offset` on. Throws a work Error when the disk fails, an input Error when the file ends
/// before them.
void read_exactly(int descriptor, void* into, size_t count, uint64_t offset, const std::string& path);

/// The first `most` bytes of a file, or all it has. Throws as open_for_reading, file_size and read_fully.
std::string read_bytes(const std::string& path, size_t most = SIZE_MAX);

}  // namespace minillm
