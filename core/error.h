#pragma once
// Errors a user or a programmer can act on: what went wrong, where, what was found, what was expected, what to do.
// `check` stays on in every build type; nothing in the library uses assert().

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace minillm {

/// Which side failed; the value is the process' exit status (docs: "Exit status" in README).
enum class Fault {
  work = 1,   ///< the input was fine, the work failed: diverged, a check failed, the disk filled
  input = 2,  ///< the input is wrong: config, file, option, shape
};

/// The parts of a message. Empty parts are left out when it is printed.
struct Problem {
  std::string where = {};     ///< "configs/tiny.toml:12", "--top-p", "[matmul] layers.0.mlp (nn/linear.cpp:31)"
  std::string what = {};      ///< one sentence without a full stop
  std::string found = {};     ///< the offending value
  std::string expected = {};  ///< what would have been right
  std::string hint = {};      ///< what to do next
};

class Error : public std::runtime_error {
 public:
  Error(Fault fault, Problem problem);

  Fault fault() const { return fault_; }
  const Problem& problem() const { return problem_; }

 private:
  Fault fault_;
  Problem problem_;
};

/// "where: what; found X; expected Y; hint"
std::string describe(const Problem& problem);

/// Throws an Error about wrong input (exit status 2).
[[noreturn]] void fail_input(Problem problem);

/// Throws one Error that lists all problems, a line each; returns when there are none.
void fail_if_any(const std::vector<Problem>& problems);

/// Throws an Error about failed work (exit status 1).
[[noreturn]] void fail_work(Problem problem);

/// Throws an input Error with the formatted message unless `ok`. For preconditions of library calls.
template <class... Args>
void check(bool ok, fmt::format_string<Args...> message, Args&&... args) {
  if (!ok) {
    fail_input({.what = fmt::format(message, std::forward<Args>(args)...)});
  }
}

/// The text of the system's last error: "No space left on device".
std::string system_error_text(int error_number);

}  // namespace minillm
