#pragma once
// What Linux says about this process and its machine, from files in /proc.

#include <string>
#include <string_view>

namespace minillm {

/// The value behind the colon of the first line of `path` that begins with `key`: "model name" of /proc/cpuinfo,
/// "VmHWM" of /proc/self/status; "" when there is none.
std::string proc_value(const char* path, std::string_view key);

}  // namespace minillm
