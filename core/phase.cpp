#include "core/phase.h"

#include "core/error.h"

namespace minillm {

PhaseClock* PhaseClock::running_ = nullptr;

std::string_view name_of(Phase phase) {
  constexpr std::array<std::string_view, phase_count> names = {
      "gemm_forward", "gemm_dx", "gemm_dw", "attention", "norms", "activations", "loss", "optimizer", "other"};
  return names[static_cast<size_t>(phase)];
}

PhaseClock::PhaseClock() : since_(Clock::now()) {
  check(running_ == nullptr, "another clock of phases is running");
  running_ = this;
}

PhaseClock::~PhaseClock() {
  running_ = nullptr;
}

Phase PhaseClock::move_hand(Phase next) {
  const Clock::time_point time = Clock::now();
  spent_[static_cast<size_t>(now_)] += time - since_;
  since_ = time;
  const Phase left = now_;
  now_ = next;
  return left;
}

std::array<double, phase_count> PhaseClock::take() {
  move_hand(now_);
  std::array<double, phase_count> seconds{};
  for (size_t i = 0; i < phase_count; ++i) {
    seconds[i] = std::chrono::duration<double>(spent_[i]).count();
  }
  spent_ = {};
  return seconds;
}

}  // namespace minillm
