#define DOCTEST_CONFIG_IMPLEMENT
#include "core/log.h"
#include "core/parallel.h"

#include <doctest/doctest.h>

int main(int argc, char** argv) {
  minillm::set_verbosity(0);
  minillm::set_num_threads(2);
  return doctest::Context(argc, argv).run();
}
