#pragma once
// A file that appears whole or not at all: written beside its name, flushed to the disk, then renamed.

#include "core/error.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

/// Writes `<path>.tmp.<pid>` and renames it to `path` in `commit`. Without a commit (an error in between) the temporary
/// file is removed and what stood at `path` is untouched.
/// Errors name the path: input when the place is wrong (no such folder, not writable), work when the disk fills.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }

  /// fsync, close, rename, fsync of the folder. A file that stood there keeps its permissions.
  void commit();

 private:
  void discard();
  [[noreturn]] void fail(const char* action, int error_number);

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
  size_t asked_for_ = 0;  // bytes, those of a failed write included
};

/// A whole small file in one call.
void write_file_atomically(const std::string& path, std::string_view contents);

// The same, step by step, for files that a library writes.

/// Throws an input Error when something stands at `path` that a file must not replace: a folder, a device, a pipe. A
/// link counts as what it points to.
void check_replaceable(const std::string& path);

/// The folder that `path` lies in; "." for a bare name.
std::string folder_of(const std::string& path);

/// "runs/a/", "runs/a/." and "runs/a" are one folder, and only the last can be renamed.
std::string without_slash(std::string folder);

/// `<path>.tmp.<pid>`
std::string temporary_name(const std::string& path);

/// Renames the flushed file `temporary` to `path` and flushes the folder: without that a power cut may bring the old
/// name back. Returns 0, or the system's error number with the temporary removed.
int put_in_place(const std::string& temporary, const std::string& path);

/// Whether an error number says that there is no room: a full disk, a quota, a limit on the size of files.
bool is_disk_full(int error_number);

/// Whether it says that the system, and not what was asked for, is at fault: no room, a disk that fails, no descriptor
/// or memory left. That is failed work, fail_disk's.
bool is_system_failure(int error_number);

/// What to do about it, for a Problem's hint; "" where nothing can be advised.
std::string advice_about_system(int error_number);

/// What a file system has left for us.
struct DiskRoom {
  uint64_t bytes = 0;
  bool has_inodes = true;
};

/// Fills in `found` and `expected` of a problem with a write that found no room.
void describe_room(const DiskRoom& room, int error_number, const std::string& needed, Problem& problem);

/// Throws the work Error about a file that the disk did not take; where it is full, with what is free and with `needed`
/// ("more than 4096 bytes"). Remove the temporary first: `free` is then what the next attempt would find.
[[noreturn]] void fail_disk(const std::string& path, int error_number, const std::string& needed);

/// Removes what killed writers left in a folder: files `<name>.tmp.<pid>` whose process is gone, where is_ours(name):
/// others may name their files so too. Says in the log what it removed, and returns the paths.
std::vector<std::string> remove_stale_temporaries(const std::string& folder,
                                                  const std::function<bool(const std::string& name)>& is_ours);

/// The same for the temporaries of one file. Each writer of a file begins so.
void remove_stale_temporaries_of(const std::string& path);

}  // namespace minillm
