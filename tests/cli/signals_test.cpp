#include "cli/signals.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <initializer_list>

using namespace minillm::cli;

namespace {

/// Runs `body` in a process of its own, silent, and returns its exit status.
template <class Body>
int status_of(Body body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const bool silent = std::freopen("/dev/null", "w", stderr) != nullptr;
    ::_exit(silent ? body() : 99);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Sends the process a signal; whether it is noticed within five seconds.
bool arrives(int number) {
  ::kill(::getpid(), number);
  for (int i = 0; i < 5000 && !stop_requested(); ++i) {
    ::usleep(1000);
  }
  return stop_requested();
}

}  // namespace

TEST_CASE("the first signal is a request, the second leaves at once") {
  for (const int number : {SIGINT, SIGTERM}) {
    const auto one = [number] {
      install_signal_handlers();
      const bool before = stop_requested();
      return !before && arrives(number) ? stopped_by_signal : 1;
    };
    CHECK(status_of(one) == 3);
    const auto two = [number] {
      install_signal_handlers();
      arrives(SIGINT);
      ::kill(::getpid(), number);
      ::sleep(5);
      return 1;
    };
    CHECK(status_of(two) == 128 + number);
  }
}

TEST_CASE("no handler ever runs: its frame would be pushed where oneDNN points the stack") {
  const auto handlers = [] {
    std::signal(SIGINT, SIG_DFL);  // not the test framework's
    std::signal(SIGTERM, SIG_DFL);
    install_signal_handlers();
    for (const int number : {SIGINT, SIGTERM}) {
      struct sigaction action = {};
      sigaction(number, nullptr, &action);
      if (action.sa_handler != SIG_DFL) {
        return 1;
      }
    }
    return 0;
  };
  CHECK(status_of(handlers) == 0);
}

TEST_CASE("a signal the parent ignores stays ignored") {
  const auto ignored = [] {
    std::signal(SIGINT, SIG_IGN);
    install_signal_handlers();
    ::kill(::getpid(), SIGINT);
    ::usleep(20'000);
    return stop_requested() ? 1 : 0;
  };
  CHECK(status_of(ignored) == 0);
}
