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

}  // namespace

TEST_CASE("the first signal is a request, the second leaves at once") {
  for (const int number : {SIGINT, SIGTERM}) {
    const auto one = [number] {
      install_signal_handlers();
      const bool before = stop_requested();
      std::raise(number);
      return !before && stop_requested() ? stopped_by_signal : 1;
    };
    CHECK(status_of(one) == 3);
    const auto two = [number] {
      install_signal_handlers();
      std::raise(SIGINT);
      std::raise(number);
      return 1;
    };
    CHECK(status_of(two) == 128 + number);
  }
}

TEST_CASE("a signal the parent ignores stays ignored") {
  const auto ignored = [] {
    std::signal(SIGINT, SIG_IGN);
    install_signal_handlers();
    std::raise(SIGINT);
    return stop_requested() ? 1 : 0;
  };
  CHECK(status_of(ignored) == 0);
}
