#include "cli/heap_watch.h"

#ifndef MINILLM_SANITIZED

#include "core/memory.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string_view>

namespace {

std::atomic<bool> watching{false};
std::atomic<int> taken{0};
std::atomic<int64_t> aligned_before{0};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Whether the innermost function outside the C and C++ libraries, from `caller` of operator new outwards, is neither
/// oneDNN's nor OpenMP's.
bool is_ours(const void* caller) {
  void* frames[32];
  const int depth = backtrace(frames, 32);
  const auto first = std::find(frames, frames + depth, caller);  // how many frames are our own depends on inlining
  for (int i = static_cast<int>(first - frames); i < depth; ++i) {
    Dl_info object = {};
    if (dladdr(frames[i], &object) == 0 || object.dli_fname == nullptr) {
      continue;
    }
    const std::string_view name = object.dli_fname;
    if (contains(name, "libstdc++") || contains(name, "libc.so")) {
      continue;
    }
    return !contains(name, "libdnnl") && !contains(name, "libgomp");
  }
  return true;
}

void* take(std::size_t bytes, std::size_t alignment, const void* caller) {
  if (watching && is_ours(caller)) {
    ++taken;
  }
  const std::size_t wanted = std::max<std::size_t>(bytes, 1);
  void* memory = nullptr;
  if (alignment <= alignof(std::max_align_t)) {
    memory = std::malloc(wanted);
  } else if (wanted <= SIZE_MAX - (alignment - 1)) {  // aligned_alloc takes multiples of the alignment
    memory = std::aligned_alloc(alignment, (wanted + alignment - 1) / alignment * alignment);
  }
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return take(bytes, alignof(std::max_align_t), __builtin_return_address(0));
}
void* operator new[](std::size_t bytes) {
  return take(bytes, alignof(std::max_align_t), __builtin_return_address(0));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return take(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace minillm::cli {

HeapWatch::HeapWatch() {
  void* frame = nullptr;
  backtrace(&frame, 1);  // its first call takes memory for itself
  taken = 0;
  aligned_before = aligned_allocations();
  watching = true;
}

HeapWatch::~HeapWatch() {
  watching = false;
}

int HeapWatch::count() {
  return taken + static_cast<int>(aligned_allocations() - aligned_before);
}

}  // namespace minillm::cli

#else

namespace minillm::cli {

HeapWatch::HeapWatch() = default;
HeapWatch::~HeapWatch() = default;

int HeapWatch::count() {
  return -1;
}

}  // namespace minillm::cli

#endif
