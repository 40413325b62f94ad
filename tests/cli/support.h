#pragma once
// Runs the built program and collects what it says.

#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace minillm::test {

struct Outcome {
  int status = -1;  ///< exit status; 128 + signal when one ended it
  std::string out;
  std::string err;
};

/// Runs the program with these words, standard output going to `out_path` ("" = collected).
inline Outcome run_program(const std::vector<std::string>& words, const std::string& out_path = "") {
  const TemporaryFolder folder;
  const std::string out = out_path.empty() ? folder / "out" : out_path;
  const std::string err = folder / "err";
  std::vector<char*> argv = {const_cast<char*>(MINILLM_BINARY)};
  for (const std::string& word : words) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const int out_file = ::open(out.c_str(), O_WRONLY | O_CREAT, 0600);
    const int err_file = ::open(err.c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(out_file, STDOUT_FILENO);
    ::dup2(err_file, STDERR_FILENO);
    ::execv(MINILLM_BINARY, argv.data());
    ::_exit(127);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  Outcome outcome;
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = out_path.empty() ? read_file(out) : "";
  outcome.err = read_file(err);
  return outcome;
}

}  // namespace minillm::test
