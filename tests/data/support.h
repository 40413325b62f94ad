#pragma once
// What the data tests share: a folder of their own, files as bytes, and the message of an expected Error.

#include "core/error.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace minillm::test {

/// A new folder under the system's temporary one, removed with everything in it.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "minillm_data_XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      result.push_back(entry.path().filename().string());
    }
    std::sort(result.begin(), result.end());
    return result;
  }

 private:
  std::string path_;
};

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  REQUIRE(file.good());
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

/// Runs `body`, which must throw an Error of this fault; returns its message.
template <class Body>
std::string message_of(Fault fault, Body body) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.fault() == fault);
    return error.what();
  }
  FAIL("no Error was thrown");
  return "";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace minillm::test

/// The message is printed when the part is missing.
#define CHECK_CONTAINS(text, part)                         \
  do {                                                     \
    const std::string text_of_check = text;                \
    INFO("message: ", text_of_check);                      \
    CHECK(::minillm::test::contains(text_of_check, part)); \
  } while (false)
