#include "autograd/ops.h"

#include <doctest/doctest.h>

using namespace minillm;

TEST_CASE("an op records the file and line it was called from") {
  Tape tape;
  Buffer x({2, 4}, DType::float64);
  Buffer w({4}, DType::float64);
  Var y = rmsnorm(tape.variable(x.tensor()), tape.variable(w.tensor()), 1e-6);
  CHECK(std::string(y.node().here.file).ends_with("rmsnorm_linear_test.cpp"));
  CHECK(y.node().here.line == 11);
}
