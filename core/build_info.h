#pragma once
// What this program was made of: for --version, summaries and checkpoints.

#include <string>

namespace minillm {

/// "0.1.0"
std::string version();

/// The git commit known when the build was configured, "+" behind it when files differed; "" outside a git checkout.
std::string commit();

/// "GCC 12.2.0", "Clang 14.0.6"
std::string compiler();

/// The version of oneDNN that runs: "2.6.3"; "" when it is built without.
std::string onednn_version();

/// A hash of what decides the bits of a run beside its config and seed: compiler, build flags, C library, what
/// multiplies matrices (kernels::gemm_numerics), and a revision that is raised whenever the code changes results. Runs
/// are comparable bit for bit where it is equal.
std::string numerics();

}  // namespace minillm
