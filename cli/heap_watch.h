#pragma once
// Counts what is taken from the heap, by replacing operator new.
//
// It is replaced for the whole program that links heap_watch.cpp.

namespace minillm::cli {

/// Counts calls of operator new and of allocate_aligned (arenas, Buffers, packed matrices) while it lives, on any
/// thread; what oneDNN and OpenMP take for themselves does not count. One at a time; slow, because every call is traced
/// back to its caller.
class HeapWatch {
 public:
  HeapWatch();
  ~HeapWatch();
  HeapWatch(const HeapWatch&) = delete;
  HeapWatch& operator=(const HeapWatch&) = delete;

  /// So far; -1 under a sanitizer, which has an operator new of its own.
  static int count();
};

}  // namespace minillm::cli
