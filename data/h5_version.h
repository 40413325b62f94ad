#pragma once
// The version of HDF5 that runs.

#include <string>

namespace minillm {

/// The version of HDF5 that runs: "1.10.8".
std::string hdf5_version();

}  // namespace minillm
