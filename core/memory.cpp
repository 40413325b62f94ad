#include "core/memory.h"

#include "core/proc.h"

#include <sys/mman.h>
#include <unistd.h>
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MINILLM_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define MINILLM_ADDRESS_SANITIZER
#endif
#if defined(MINILLM_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <string>

namespace minillm {

namespace {

std::atomic<int64_t> allocations{0};

int64_t bytes_of_status(const char* key) {
  const std::string kilobytes = proc_value("/proc/self/status", key);
  return kilobytes.empty() ? 0 : std::stoll(kilobytes) * 1024;
}

}  // namespace

void* allocate_aligned(size_t bytes) {
  const bool is_large = bytes >= huge_page_bytes;
  const size_t alignment = is_large ? huge_page_bytes : cache_line_bytes;
  const size_t rounded = round_up(std::max<size_t>(bytes, 1), alignment);
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (is_large) {
    madvise(memory, rounded, MADV_HUGEPAGE);  // a hint: where it is refused, small pages do
  }
  return memory;
}

void mark_unused([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#if defined(MINILLM_ADDRESS_SANITIZER)
  ASAN_POISON_MEMORY_REGION(memory, bytes);
#elif !defined(NDEBUG)
  if (bytes > 0) {
    std::memset(memory, 0xff, bytes);
  }
#endif
}

void mark_used([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#if defined(MINILLM_ADDRESS_SANITIZER)
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
#endif
}

int64_t aligned_allocations() {
  return allocations.load(std::memory_order_relaxed);
}

double physical_memory() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
}

int64_t resident_memory_bytes() {
  return bytes_of_status("VmRSS");
}

int64_t peak_memory_bytes() {
  return bytes_of_status("VmHWM");
}

void restart_peak_memory() {
  std::ofstream("/proc/self/clear_refs") << "5";  // proc(5): resets VmHWM
}

}  // namespace minillm
