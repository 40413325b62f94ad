#pragma once
// A folder of its own for a test, removed at the end.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace minillm {

class TemporaryFolder {
 public:
  TemporaryFolder() : TemporaryFolder(std::filesystem::temp_directory_path().string()) {}
  explicit TemporaryFolder(const std::string& parent) {
    std::string pattern = parent + "/minillm_test_XXXXXX";
    const char* made = mkdtemp(pattern.data());
    path_ = made == nullptr ? "/no temporary folder" : made;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = *this / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

 private:
  std::string path_;
};

/// Where flushing costs nothing, for tests that save hundreds of files; a killed process leaves the same behind there.
inline std::string fast_temporary_parent() {
  const bool usable = access("/dev/shm", W_OK) == 0;
  return usable ? "/dev/shm" : std::filesystem::temp_directory_path().string();
}

inline std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace minillm
