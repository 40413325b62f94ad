#include "core/log.h"

#include "core/text.h"

#include <cstdio>
#include <cstdlib>

namespace minillm {

namespace {

int initial_verbosity() {
  const char* text = std::getenv("MINILLM_VERBOSE");
  return text != nullptr && std::string_view(text) == "0" ? 0 : 1;
}

int& level() {
  static int value = initial_verbosity();
  return value;
}

}  // namespace

void set_verbosity(int new_level) {
  level() = new_level;
}

int verbosity() {
  return level();
}

void log_line(std::string_view line) {
  std::fprintf(stderr, "%s\n", without_controls(line).c_str());
}

}  // namespace minillm
