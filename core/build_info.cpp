#include "core/build_info.h"

#include "core/kernels/gemm.h"
#include "core/rng.h"

#include <fmt/format.h>

#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#ifdef MINILLM_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

#if defined(__FAST_MATH__) || __FINITE_MATH_ONLY__
#error "-ffast-math removes the checks for NaN and infinity and reorders sums: build minillm without it"
#endif

namespace minillm {

namespace {

// Raised with every change that moves a bit of a run's losses or weights.
constexpr int numerics_revision = 7;

/// log, exp, sin and cos in double come from the C library, which chooses a version of each by the processor.
std::string math_library() {
#if defined(__GLIBC__) && defined(__x86_64__)
  return fmt::format("glibc {} fma {}", gnu_get_libc_version(), __builtin_cpu_supports("fma") != 0);
#else
  return "another C library";
#endif
}

}  // namespace

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

std::string numerics() {
  const std::string facts = fmt::format("{} | {} | {} | {} | revision {}", compiler(), MINILLM_FLAGS, math_library(),
                                        kernels::gemm_numerics(), numerics_revision);
  return fmt::format("{:016x}", random_key(0, "numerics", facts));
}

}  // namespace minillm
