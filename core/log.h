#pragma once
// Messages to people go to standard error; results go to standard output (cli/). One verbosity for the whole program.

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace minillm {

/// 0 silent (tests), 1 what a user wants to read. At the start 1, or 0 when the environment has MINILLM_VERBOSE=0.
void set_verbosity(int level);
int verbosity();

/// Writes one line to standard error, whatever the verbosity: its callers, the two below, ask first.
void log_line(std::string_view line);

template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  if (verbosity() >= 1) {
    log_line(fmt::format(format, std::forward<Args>(args)...));
  }
}

/// Like log_info, marked: something deserves attention but the work goes on.
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  if (verbosity() >= 1) {
    log_line("warning: " + fmt::format(format, std::forward<Args>(args)...));
  }
}

}  // namespace minillm
