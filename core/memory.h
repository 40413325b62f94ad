#pragma once
// Memory of the machine and of this process.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace minillm {

inline constexpr size_t cache_line_bytes = 64;
inline constexpr size_t huge_page_bytes = size_t{2} << 20;

constexpr size_t round_up(size_t bytes, size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

/// Uninitialised memory on a 64-byte boundary, for std::free. From 2 MiB on it begins on a huge page and asks for more
/// of them: a page of 4 KiB ends what the processor fetches ahead, and costs a fault and an entry of the TLB. Never
/// null.
void* allocate_aligned(size_t bytes);

/// For memory that is handed out again and again. Between mark_unused and mark_used nobody may touch it: under
/// AddressSanitizer that is an error; in other builds without NDEBUG its floats are NaN; with NDEBUG nothing is done.
void mark_unused(void* memory, size_t bytes);
void mark_used(void* memory, size_t bytes);

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};
/// What allocate_aligned gave, with its owner.
using AlignedMemory = std::unique_ptr<void, FreeMemory>;

/// How often allocate_aligned was called in this process, from any thread: it does not pass through operator new.
int64_t aligned_allocations();

/// Bytes of the machine's memory, whoever uses them now: what does not fit is refused before it is taken.
double physical_memory();

/// Bytes this process holds now, and the most it ever held; 0 when the system does not say.
int64_t resident_memory_bytes();
int64_t peak_memory_bytes();

/// Lets the most ever held be what is held now, where the system allows it: for several runs in one process.
void restart_peak_memory();

}  // namespace minillm
