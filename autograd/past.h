#pragma once
// What a model keeps of the positions it has read, so that the next ones can be read alone: keys and values, latents,
// states. A Tape that is given a Past (TapeOptions::past) stands behind those positions.

#include "core/tensor.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace minillm {

class Past {
 public:
  /// Room for `capacity` positions of one sequence. Memory is taken when modules first ask for it.
  explicit Past(int64_t capacity) : capacity_(capacity) {}

  int64_t positions() const { return positions_; }  ///< read so far
  int64_t capacity() const { return capacity_; }
  size_t bytes() const;

  /// Buffer `slot` of the module at `path`: all zero in front of the first position, later as the module left it. The
  /// shape is the same at every call.
  const Tensor& buffer(std::string_view path, size_t slot, const Shape& shape, DType dtype);

  /// After a pass over `count` positions.
  void advance(int64_t count);

  /// Back to the start of a sequence; the memory stays.
  void clear();

 private:
  int64_t capacity_;
  int64_t positions_ = 0;
  std::map<std::string, std::vector<Buffer>, std::less<>> buffers_;
};

}  // namespace minillm
