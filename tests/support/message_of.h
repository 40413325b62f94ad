#pragma once
// The message of an expected Error, and what it must contain.

#include "core/error.h"

#include <doctest/doctest.h>

#include <string>

namespace minillm::test {

/// The message of the Error that `body` throws; empty when it throws none.
template <class Body>
std::string message_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Runs `body`, which must throw an Error of this fault; returns its message.
template <class Body>
std::string message_of(Fault fault, Body body) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.fault() == fault);
    return error.what();
  }
  FAIL("no Error was thrown");
  return "";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace minillm::test

/// The message is printed when the part is missing.
#define CHECK_CONTAINS(text, part)                         \
  do {                                                     \
    const std::string text_of_check = text;                \
    INFO("message: ", text_of_check);                      \
    CHECK(::minillm::test::contains(text_of_check, part)); \
  } while (false)
