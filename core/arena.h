#pragma once
// The bump allocator behind a tape: memory is taken in order and given back all at once.

#include <cstddef>
#include <memory>
#include <vector>

namespace minillm {

/// Hands out 64-byte aligned, uninitialised memory from large blocks. `clear` keeps the memory: when several blocks
/// were needed it replaces them by one large enough for all, so the second step of a training run takes everything from
/// one block and the heap is left alone.
class Arena {
 public:
  explicit Arena(size_t first_block_bytes = size_t{1} << 20);

  void* allocate(size_t bytes);

  /// Makes all memory available again. Pointers handed out before are invalid from here on, and marked so
  /// (mark_unused).
  void clear();

  size_t bytes_used() const { return used_; }          ///< handed out since the last clear
  size_t bytes_reserved() const { return reserved_; }  ///< held in blocks

 private:
  struct Free {
    void operator()(char* memory) const;
  };
  struct Block {
    std::unique_ptr<char, Free> memory;
    size_t size = 0;
    size_t used = 0;
  };

  void add_block(size_t bytes);

  std::vector<Block> blocks_;
  size_t next_block_bytes_;
  size_t used_ = 0;
  size_t reserved_ = 0;
};

}  // namespace minillm
