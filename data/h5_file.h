#pragma once
// HDF5 files as minillm writes and reads them: checked before they are trusted, replaced whole or not at all.
//
// A file begins with the user block of data/user_block.h. It is written beside its target (`<target>.tmp.<pid>`),
// stamped, flushed and renamed: whoever looks sees the old file or the new one. The same contents give the same bytes,
// so the block's SHA-256 names the contents. HDF5 1.10 and 1.14 read and write the same files.

#include "core/tensor.h"
#include "data/user_block.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

/// What a dataset holds. `other`: a type we never write (strings, big-endian numbers, compounds).
enum class H5Type { f32, f64, i32, i64, u8, u16, u32, other };

std::string_view to_string(H5Type type);

/// Writes one file. Until commit() only the temporary exists; the destructor removes it.
///
/// A disk that fills is noticed by write streams at once and by the rest in commit(): a work Error with the bytes
/// needed and free. A folder that is missing or cannot be written, and a target that is no file (a device, a pipe), is
/// an input Error of the constructor.
class H5Writer {
 public:
  H5Writer(const std::string& path, const H5Format& format);
  ~H5Writer();
  H5Writer(const H5Writer&) = delete;
  H5Writer& operator=(const H5Writer&) = delete;

  /// A dataset of the given shape, contiguous and uncompressed (weights hardly compress). Groups in the name
  /// ("/weights/lm_head.weight") are made. T: float, double, int32_t, int64_t, uint8_t, uint16_t, uint32_t.
  template <class T>
  void write(const std::string& name, const T* values, const Shape& shape);
  void write(const std::string& name, const Tensor& tensor);

  /// A one-dimensional u8 dataset: text, a serialized model.
  void write_bytes(const std::string& name, std::string_view bytes);

  /// Attributes of an existing object; "/" is the file itself. Text may be empty and holds at most 60,000 bytes.
  void set_attribute(const std::string& object, const std::string& name, int64_t value);
  void set_attribute(const std::string& object, const std::string& name, double value);
  void set_attribute(const std::string& object, const std::string& name, std::string_view value);

  /// Stamps, flushes to the disk and renames over the target, whose permissions stay. Returns the SHA-256 of the
  /// contents.
  std::string commit();

 private:
  template <class T>
  friend class H5Stream;
  struct State;
  std::unique_ptr<State> state_;
};

/// A one-dimensional dataset written piece by piece, with bounded memory: chunks of 262,144 values, shuffled and
/// deflated. T: uint16_t, uint32_t. finish() before the writer's commit().
template <class T>
class H5Stream {
 public:
  H5Stream(H5Writer& writer, const std::string& name);
  ~H5Stream();
  H5Stream(const H5Stream&) = delete;
  H5Stream& operator=(const H5Stream&) = delete;

  void append(const T* values, size_t count);
  void finish();
  uint64_t size() const { return written_ + pending_.size(); }

 private:
  void flush();

  H5Writer::State& state_;
  std::string name_;
  int64_t dataset_;
  std::vector<T> pending_;
  uint64_t written_ = 0;
};

/// Reads one file, after check_user_block. Locks nothing and writes nothing, so read-only folders and many readers
/// work. Errors name the file, the dataset, what was found and what is needed.
class H5Reader {
 public:
  H5Reader(const std::string& path, const H5Format& format);
  ~H5Reader();
  H5Reader(H5Reader&&) noexcept;
  H5Reader& operator=(H5Reader&&) noexcept;

  const std::string& path() const;
  int version() const;                ///< of the format, as stamped
  const std::string& sha256() const;  ///< of the contents, as stamped and checked

  bool has(const std::string& name) const;                        ///< a dataset or group of that name
  std::vector<std::string> list(const std::string& group) const;  ///< names in a group, sorted; empty when missing

  Shape shape(const std::string& dataset) const;
  H5Type type(const std::string& dataset) const;

  /// All values of a dataset of exactly this element type and rank.
  template <class T>
  std::vector<T> read(const std::string& dataset, int rank = 1) const;

  /// The values of a dataset whose shape and element type are the tensor's.
  void read(const std::string& dataset, const Tensor& into) const;

  std::string read_bytes(const std::string& dataset) const;

  bool has_attribute(const std::string& object, const std::string& name) const;
  int64_t int_attribute(const std::string& object, const std::string& name) const;
  double double_attribute(const std::string& object, const std::string& name) const;
  std::string string_attribute(const std::string& object, const std::string& name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace minillm
