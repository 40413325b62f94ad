#pragma once
// A benchmark of the training step: its time by phases, beside what the machine can do.

#include "core/phase.h"
#include "train/config_file.h"

#include <array>
#include <cstdint>
#include <functional>
#include <limits>

namespace minillm {

/// The vocabulary where neither the config nor data say one: the reference model's.
inline constexpr int64_t bench_vocab_size = 2048;

struct BenchOptions {
  int64_t warmup_steps = 5;  ///< not counted: memory is touched, caches and clocks settle
  int64_t steps = 20;
};

/// docs/numbers.md defines each number.
struct BenchResult {
  int64_t parameters = 0;
  int64_t tokens_per_step = 0;
  double step_seconds = 0;                        ///< of the median step
  std::array<double, phase_count> phases{};       ///< seconds of that step, in order of Phase; they sum to it
  std::array<double, phase_count> phase_flops{};  ///< operations of the step's phases; 0 where they are not counted
  double flops = 0;                               ///< of the step
  double fma_peak_gflops = 0;                     ///< the better of a probe before the steps and one behind; 0: none
  double fma_peak_change = 0;                     ///< the later probe less the earlier, over the earlier
  double last_loss = 0;                           ///< which shows that two programs did the same work
  int64_t memory_before_bytes = 0;                ///< the process, before the model was built
  int64_t peak_memory_bytes = 0;
  double memory_formula_bytes = 0;  ///< what the steps need at least, see train/memory_estimate.h
  int64_t arena_bytes = 0;

  double tokens_per_second() const { return static_cast<double>(tokens_per_step) / step_seconds; }
  /// Whether this processor's peak is measured (core/fma_peak.h).
  bool has_peak() const { return fma_peak_gflops > 0; }
  /// The share of the machine's peak that these operations in this time are; NaN without one.
  double share_of_peak(double operations, double seconds) const {
    return has_peak() ? operations / seconds / 1e9 / fma_peak_gflops : std::numeric_limits<double>::quiet_NaN();
  }
  double mfu() const { return share_of_peak(flops, step_seconds); }  ///< of the whole step
};

/// Called with a function that runs one step.
using StepHook = std::function<void(const std::function<void()>& step)>;

/// Trains for some steps on the config's data, or on random tokens when data.path is empty; completes the config.
/// `after_warmup` (nullptr: none) is called before the counted steps: there a caller may watch one. Throws as
/// open_data_of and complete_config.
BenchResult bench(LoadedConfig loaded, const BenchOptions& options, const StepHook& after_warmup = nullptr);

}  // namespace minillm
