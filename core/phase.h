#pragma once
// Where a training step's time goes: one clock whose hand moves from phase to phase.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace minillm {

/// The parts of a step that `minillm bench` tells apart; docs/numbers.md defines them.
enum class Phase : uint8_t { gemm_forward, gemm_dx, gemm_dw, attention, norms, activations, loss, optimizer, other };

inline constexpr size_t phase_count = static_cast<size_t>(Phase::other) + 1;

/// "gemm_forward"
std::string_view name_of(Phase phase);

/// Counts wall time by phase while it lives, beginning in Phase::other; what it counts sums to the whole. One clock at
/// a time, moved by the thread that runs the steps; without a clock, moving its hand costs a comparison.
class PhaseClock {
 public:
  PhaseClock();
  ~PhaseClock();
  PhaseClock(const PhaseClock&) = delete;
  PhaseClock& operator=(const PhaseClock&) = delete;

  static bool is_running() { return running_ != nullptr; }

  /// What follows is counted as `next`; returns the phase that was counted until here, `next` without a clock.
  static Phase move_to(Phase next) { return running_ == nullptr ? next : running_->move_hand(next); }

  /// Seconds of each phase, in order of the enum, since the clock was made or taken from last.
  std::array<double, phase_count> take();

 private:
  using Clock = std::chrono::steady_clock;

  Phase move_hand(Phase next);

  static PhaseClock* running_;

  std::array<Clock::duration, phase_count> spent_{};
  Clock::time_point since_;
  Phase now_ = Phase::other;
};

/// `const InPhase part(Phase::gemm_dw);`: the rest of this scope is counted there, and what follows as before.
class InPhase {
 public:
  explicit InPhase(Phase phase) : outer_(PhaseClock::move_to(phase)) {}
  ~InPhase() { PhaseClock::move_to(outer_); }
  InPhase(const InPhase&) = delete;
  InPhase& operator=(const InPhase&) = delete;

 private:
  Phase outer_;
};

}  // namespace minillm
