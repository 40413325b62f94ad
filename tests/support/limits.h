#pragma once
// Limits of the process for a part of a test: they end with the scope, however it is left.

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <csignal>

namespace minillm::test {

/// A smaller soft limit of a resource: RLIMIT_NOFILE, for example.
class ResourceLimit {
 public:
  using Resource = decltype(RLIMIT_FSIZE);  // an enum of glibc's, an int elsewhere

  ResourceLimit(Resource resource, rlim_t most) : resource_(resource) {
    REQUIRE(getrlimit(resource_, &before_) == 0);
    const struct rlimit limit = {.rlim_cur = most, .rlim_max = before_.rlim_max};
    REQUIRE(setrlimit(resource_, &limit) == 0);
  }
  ~ResourceLimit() { setrlimit(resource_, &before_); }
  ResourceLimit(const ResourceLimit&) = delete;
  ResourceLimit& operator=(const ResourceLimit&) = delete;

 private:
  Resource resource_;
  struct rlimit before_ = {};
};

/// Files end at this many bytes, as on a full disk: a write fails and no signal comes.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)), limit_(RLIMIT_FSIZE, bytes) {}
  ~FileSizeLimit() { std::signal(SIGXFSZ, handler_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  ResourceLimit limit_;
};

}  // namespace minillm::test
