#include "core/build_info.h"

#include <fmt/format.h>

#ifdef MINILLM_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

namespace minillm {

std::string version() {
  return MINILLM_VERSION;
}

std::string commit() {
  return MINILLM_COMMIT;
}

std::string compiler() {
#ifdef __clang__
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::string onednn_version() {
#ifdef MINILLM_ONEDNN
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
#else
  return "";
#endif
}

}  // namespace minillm
