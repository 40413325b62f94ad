#include "core/memory.h"

#include "core/proc.h"

#include <unistd.h>

#include <string>

namespace minillm {

namespace {

int64_t bytes_of_status(const char* key) {
  const std::string kilobytes = proc_value("/proc/self/status", key);
  return kilobytes.empty() ? 0 : std::stoll(kilobytes) * 1024;
}

}  // namespace

double physical_memory() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
}

int64_t resident_memory_bytes() {
  return bytes_of_status("VmRSS");
}

int64_t peak_memory_bytes() {
  return bytes_of_status("VmHWM");
}

}  // namespace minillm
