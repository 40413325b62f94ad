#include "core/proc.h"

#include <fstream>

namespace minillm {

std::string proc_value(const char* path, std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const size_t colon = line.find(':');
    if (line.starts_with(key) && colon != std::string::npos) {
      const size_t begin = line.find_first_not_of(" \t", colon + 1);
      return begin == std::string::npos ? "" : line.substr(begin);
    }
  }
  return "";
}

}  // namespace minillm
