#include "cli/signals.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <initializer_list>

namespace minillm::cli {

namespace {

volatile std::sig_atomic_t signals_seen = 0;

// Only async-signal-safe calls: write and _exit.
void on_signal(int number) {
  if (signals_seen != 0) {
    _exit(128 + number);
  }
  signals_seen = 1;
  const int saved_errno = errno;
  static constexpr char message[] = "\nstopping after this step and saving; once more to stop now\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message, sizeof(message) - 1);
  errno = saved_errno;
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // a read or write under way goes on
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction before = {};
    sigaction(number, nullptr, &before);
    const bool ignored_by_parent = before.sa_handler == SIG_IGN;  // nohup, background jobs of a script
    if (!ignored_by_parent) {
      sigaction(number, &action, nullptr);
    }
  }
}

bool stop_requested() {
  return signals_seen != 0;
}

}  // namespace minillm::cli
