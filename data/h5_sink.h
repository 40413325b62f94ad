#pragma once
// Inside data/h5_*.cpp only: the HDF5 file driver through which the writer writes.
//
// libhdf5 copes badly with a write that fails: handles stay open, closing fails too, and the process may hang at its
// end. So our driver never reports one. It remembers the first error, drops what comes after, and keeps counting, so
// that the writer can say how many bytes the whole file would have needed.

#include <cstdint>

namespace minillm::h5 {

struct Sink {
  int descriptor = -1;
  int error_number = 0;  ///< errno of the first failed write; 0 while all is well
  uint64_t end = 0;      ///< bytes the file has or would have had
};

/// A file access property list (caller closes it) that writes to sink->descriptor; negative when libhdf5 refuses.
int64_t sink_access_list(Sink* sink);

}  // namespace minillm::h5
