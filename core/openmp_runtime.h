#pragma once
// One OpenMP runtime in a process: two keep two pools of threads, each as large as the machine, that fight for its
// cores.

#include <string>
#include <vector>

namespace minillm {

/// The OpenMP runtimes loaded into this process, by path: GNU's, LLVM's, Intel's.
std::vector<std::string> openmp_runtimes();

/// Throws an input Error when there are two. For the start of a program.
void refuse_two_openmp_runtimes();

}  // namespace minillm
