#pragma once
// Threads. Work whose pieces are added up is cut into chunks by shape alone, each chunk is done by one thread, and what
// chunks produce is combined in chunk order: results are the same bits for any number of threads.

#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace minillm {

/// Threads used by parallel_for from here on; 0: as many as usable cores. num_threads() is less than what was asked for
/// when the environment (OMP_THREAD_LIMIT) grants fewer.
void set_num_threads(int threads);
int num_threads();

/// Cores this process may use: the affinity mask, capped by the cgroup's CPU quota.
int usable_cores();

/// Denormals are flushed to zero on every worker thread: products that underflow would else cost a hundred cycles each.
void flush_denormals();

/// What was thrown in chunks of a parallel loop: an exception that left a parallel region would end the program.
class FirstFailure {
 public:
  /// Takes the exception being handled. Of several, that of the lowest chunk stays: the same for any number of threads.
  void keep(int64_t chunk);
  void rethrow() const;  ///< nothing when nothing was kept

 private:
  std::mutex mutex_;
  std::exception_ptr failure_;
  int64_t chunk_ = 0;
};

/// Calls body(begin, end) for [0, count) cut into chunks of `chunk` (the last one shorter), in parallel. When chunks
/// throw, the exception of the first of them is thrown once all are done. A single chunk runs on the calling thread:
/// waking others costs more than small work takes.
template <class Body>
void parallel_for(int64_t count, int64_t chunk, Body body) {
  const int64_t chunks = (count + chunk - 1) / chunk;
#ifdef _OPENMP
  if (chunks > 1 && num_threads() > 1) {
    FirstFailure failure;
#pragma omp parallel for schedule(dynamic, 1)
    for (int64_t i = 0; i < chunks; ++i) {
      try {
        body(i * chunk, std::min(count, (i + 1) * chunk));
      } catch (...) {
        failure.keep(i);
      }
    }
    failure.rethrow();
    return;
  }
#endif
  for (int64_t i = 0; i < chunks; ++i) {
    body(i * chunk, std::min(count, (i + 1) * chunk));
  }
}

}  // namespace minillm
