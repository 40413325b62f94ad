#include "train/presets.h"

#include <algorithm>
#include <filesystem>

namespace minillm {

namespace {

namespace fs = std::filesystem;

constexpr int most_parents = 5;  // from build/matrix/gcc-release/minillm up to the sources

/// Where presets may stand, the program's own folders first: beside one of the folders above it, a build's sources or
/// where it was installed.
std::vector<fs::path> folders() {
  std::error_code error;
  std::vector<fs::path> roots;
  fs::path above = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (int parent = 0; parent < most_parents && above.has_relative_path(); ++parent) {
    above = above.parent_path();
    roots.push_back(above / "share" / "minillm");
    roots.push_back(above);
  }
  roots.emplace_back(".");
  std::vector<fs::path> found;
  for (const fs::path& root : roots) {
    found.push_back(root / "configs" / "presets");
    found.push_back(root / "configs" / "presets" / "models");
  }
  return found;
}

}  // namespace

std::string find_preset(const std::string& name) {
  std::error_code error;
  if (name.empty() || name.find('/') != std::string::npos) {
    return "";
  }
  for (const fs::path& folder : folders()) {
    const fs::path file = folder / (name + ".toml");
    if (fs::is_regular_file(file, error)) {
      return file.lexically_normal().string();
    }
  }
  return "";
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::path& folder : folders()) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() == ".toml") {
        names.push_back(entry.path().stem().string());
      }
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace minillm
