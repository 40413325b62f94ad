#pragma once
// The [data] section of a config.

#include <cstdint>
#include <string>

namespace minillm {

struct DataConfig {
  std::string path;                ///< a file of `minillm prepare` or `import-tokens`, or "synthetic"
  int64_t seq_len = 256;           ///< tokens a window, T
  std::string order = "shuffled";  ///< in which windows are read: shuffled, sequential
  std::string objective = "next";  ///< what is predicted: next (the next token), masked (hidden ones)
};

}  // namespace minillm
