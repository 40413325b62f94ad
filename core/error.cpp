#include "core/error.h"

#include <cstring>

namespace minillm {

Error::Error(Fault fault, Problem problem)
    : std::runtime_error(describe(problem)), fault_(fault), problem_(std::move(problem)) {}

std::string describe(const Problem& problem) {
  std::string text;
  if (!problem.where.empty()) {
    text += problem.where + ": ";
  }
  text += problem.what;
  if (!problem.found.empty()) {
    text += "; found " + problem.found;
  }
  if (!problem.expected.empty()) {
    text += "; expected " + problem.expected;
  }
  if (!problem.hint.empty()) {
    text += "; " + problem.hint;
  }
  return text;
}

void fail_input(Problem problem) {
  throw Error(Fault::input, std::move(problem));
}

void fail_if_any(const std::vector<Problem>& problems) {
  if (problems.empty()) {
    return;
  }
  if (problems.size() == 1) {
    fail_input(problems.front());
  }
  std::string lines = fmt::format("{} problems", problems.size());
  for (const Problem& problem : problems) {
    lines += "\n  " + describe(problem);
  }
  fail_input({.what = lines});
}

void fail_work(Problem problem) {
  throw Error(Fault::work, std::move(problem));
}

std::string system_error_text(int error_number) {
  return std::strerror(error_number);
}

}  // namespace minillm
