#pragma once
// The [data] section of a config.

#include <cstdint>
#include <string>

namespace minillm {

struct DataConfig {
  std::string path;                ///< an .h5 file of `minillm prepare`, or "synthetic"
  int64_t seq_len = 256;           ///< tokens a window (T)
  std::string order = "shuffled";  ///< shuffled, sequential
  std::string objective = "next";  ///< next
};

}  // namespace minillm
