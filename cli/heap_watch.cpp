#include "cli/heap_watch.h"

#ifndef MINILLM_SANITIZED

#include <dlfcn.h>
#include <execinfo.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <string_view>

namespace {

std::atomic<bool> watching{false};
std::atomic<int> taken{0};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Whether the innermost caller outside the C and C++ libraries is neither oneDNN nor OpenMP.
bool is_ours() {
  void* frames[32];
  const int depth = backtrace(frames, 32);
  for (int i = 2; i < depth; ++i) {  // 0 and 1: this function and operator new
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

void* take(std::size_t bytes, std::size_t alignment) {
  if (watching && is_ours()) {
    ++taken;
  }
  const std::size_t rounded = (bytes + alignment) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return take(bytes, alignof(std::max_align_t));
}
void* operator new[](std::size_t bytes) {
  return take(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return take(bytes, static_cast<std::size_t>(alignment));
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
  watching = true;
}

HeapWatch::~HeapWatch() {
  watching = false;
}

int HeapWatch::count() {
  return taken;
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
