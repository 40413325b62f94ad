#include "cli/signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <initializer_list>
#include <thread>

namespace minillm::cli {

namespace {

std::atomic<bool> signal_seen = false;

/// Waits for signals in a thread of its own for as long as the process lives.
void wait_for_signals(sigset_t waited_for) {
  for (;;) {
    int number = 0;
    if (sigwait(&waited_for, &number) != 0) {
      continue;
    }
    const bool is_second = signal_seen.exchange(true);
    if (is_second && number == SIGXCPU) {
      continue;  // it comes every second until the work ends
    }
    if (is_second) {
      _exit(128 + number);
    }
    static constexpr char message[] = "\nstopping after this step and saving; once more to stop now\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message, sizeof(message) - 1);
  }
}

}  // namespace

// No handler: oneDNN's AVX-512 products point the stack pointer into the heap while they run, and the kernel would push
// a handler's frame there, over other data. So the signals are blocked in every thread (threads inherit the mask of the
// one that starts them) and one thread, which computes nothing, waits for them.
void install_signal_handlers() {
  std::signal(SIGPIPE, SIG_IGN);  // whoever reads the progress may go, `| tee` at Ctrl-C first of all
  sigset_t waited_for;
  sigemptyset(&waited_for);
  bool any = false;
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGXCPU}) {
    struct sigaction before = {};
    sigaction(number, nullptr, &before);
    const bool ignored_by_parent = before.sa_handler == SIG_IGN;  // nohup, background jobs of a script
    if (!ignored_by_parent) {
      sigaddset(&waited_for, number);
      any = true;
    }
  }
  if (any) {
    pthread_sigmask(SIG_BLOCK, &waited_for, nullptr);
    std::thread(wait_for_signals, waited_for).detach();
  }
}

bool stop_requested() {
  return signal_seen.load();
}

}  // namespace minillm::cli
