#include "core/openmp_runtime.h"

#include "core/error.h"
#include "core/text.h"

#include <link.h>

#include <string_view>

namespace minillm {

namespace {

/// Called by dl_iterate_phdr for every loaded library.
int add_runtime(dl_phdr_info* library, size_t, void* found) {
  const std::string_view path = library->dlpi_name;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const std::string_view runtime : {"libgomp.so", "libomp.so", "libiomp5.so"}) {
    if (name.starts_with(runtime)) {
      static_cast<std::vector<std::string>*>(found)->emplace_back(path);
    }
  }
  return 0;
}

}  // namespace

std::vector<std::string> openmp_runtimes() {
  std::vector<std::string> found;
  dl_iterate_phdr(add_runtime, &found);
  return found;
}

void refuse_two_openmp_runtimes() {
  const std::vector<std::string> runtimes = openmp_runtimes();
  if (runtimes.size() > 1) {
    fail_input({.where = "start",
                .what = "two OpenMP runtimes are loaded into one process",
                .found = join(runtimes),
                .expected = "one, the compiler's",
                .hint = "see LD_PRELOAD, or build with GCC, whose runtime oneDNN uses too"});
  }
}

}  // namespace minillm
