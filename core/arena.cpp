#include "core/arena.h"

#include "core/memory.h"

#include <algorithm>
#include <cstdlib>

namespace minillm {

void Arena::Free::operator()(char* memory) const {
  std::free(memory);
}

Arena::Arena(size_t first_block_bytes) : next_block_bytes_(first_block_bytes) {}

void* Arena::allocate(size_t bytes) {
  const size_t rounded = round_up(std::max<size_t>(bytes, 1), cache_line_bytes);
  if (blocks_.empty() || blocks_.back().used + rounded > blocks_.back().size) {
    // Blocks double, so a first step of unknown size needs few of them.
    add_block(std::max(rounded, next_block_bytes_));
  }
  Block& block = blocks_.back();
  char* memory = block.memory.get() + block.used;
  block.used += rounded;
  used_ += rounded;
  mark_used(memory, bytes);
  return memory;
}

void Arena::clear() {
  if (blocks_.size() > 1) {
    const size_t total = used_;  // without the gaps at the blocks' ends
    blocks_.clear();
    reserved_ = 0;
    add_block(total);
  } else if (!blocks_.empty()) {
    mark_unused(blocks_.back().memory.get(), blocks_.back().used);
    blocks_.back().used = 0;
  }
  used_ = 0;
}

void Arena::add_block(size_t bytes) {
  const size_t size = round_up(bytes, huge_page_bytes);
  char* memory = static_cast<char*>(allocate_aligned(size));
  mark_unused(memory, size);
  blocks_.push_back({std::unique_ptr<char, Free>(memory), size, 0});
  reserved_ += size;
  next_block_bytes_ = size * 2;
}

}  // namespace minillm
