#include "core/parallel.h"

#include "core/error.h"

#include <sched.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace minillm {

namespace {

int threads_in_use = 1;

// cgroup v2: "max 100000" or "200000 100000" (quota and period in microseconds).
double cgroup_cpu_quota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) {
    return HUGE_VAL;
  }
  return std::strtod(quota.c_str(), nullptr) / period;
}

#ifdef _OPENMP
// OMP_THREAD_LIMIT may grant fewer than were asked for; num_threads() and what is reported from it must not say more.
int granted_threads() {
  int granted = 1;
#pragma omp parallel
#pragma omp single
  granted = omp_get_num_threads();
  return granted;
}
#endif

void flush_denormals_here() {
#if defined(__SSE__)
  constexpr unsigned flush_to_zero = 0x8000;
  constexpr unsigned denormals_are_zero = 0x0040;
  _mm_setcsr(_mm_getcsr() | flush_to_zero | denormals_are_zero);
#endif
}

}  // namespace

void set_num_threads(int threads) {
  check(threads >= 0, "the number of threads is at least 1, or 0 for one a core, found {}", threads);
  threads_in_use = threads > 0 ? threads : usable_cores();
#ifdef _OPENMP
  omp_set_dynamic(0);
  omp_set_num_threads(threads_in_use);
  threads_in_use = granted_threads();
  omp_set_num_threads(threads_in_use);
#endif
  flush_denormals();
}

int num_threads() {
  return threads_in_use;
}

int usable_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  const int cores = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 1;
  const double quota = cgroup_cpu_quota();
  return std::max(1, quota < cores ? static_cast<int>(std::floor(quota)) : cores);
}

void FirstFailure::keep(int64_t chunk) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_ || chunk < chunk_) {
    failure_ = std::current_exception();
    chunk_ = chunk;
  }
}

void FirstFailure::rethrow() const {
  if (failure_) {
    std::rethrow_exception(failure_);
  }
}

void flush_denormals() {
  // Here first: LLVM's runtime gives every thread of a region the control word of the one that opens it.
  flush_denormals_here();
#ifdef _OPENMP
#pragma omp parallel
  flush_denormals_here();
#endif
}

}  // namespace minillm
