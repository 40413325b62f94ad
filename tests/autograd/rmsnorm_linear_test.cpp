#include "core/parallel.h"
#include "tests/autograd/op_test.h"

using namespace minillm;
using namespace minillm::test;

namespace {

Op rmsnorm_with(double offset) {
  return [offset](Tape&, const std::vector<Var>& v) { return rmsnorm(v[0], v[1], 1e-5, offset); };
}

Var linear_op(Tape&, const std::vector<Var>& v) {
  return linear(v[0], v[1], v.size() == 3 ? v[2] : Var());
}

/// Fused, composed and reference, in float and double, against fused in double.
void check_paths(const Op& op, const std::vector<Buffer>& inputs, double float_tolerance) {
  const Outcome exact = run(op, inputs, DType::float64);
  check_close(run(op, inputs, DType::float64, composed_ops), exact, 1e-12);
  check_close(run(op, inputs, DType::float32), exact, float_tolerance);
  check_close(run(op, inputs, DType::float32, reference_kernels), exact, float_tolerance);
  check_close(run(op, inputs, DType::float32, composed_ops), exact, float_tolerance);
  check_close(run(op, inputs, DType::float32, {.kernels = Kernels::reference, .ops = Ops::composed}), exact,
              float_tolerance);
}

}  // namespace

TEST_CASE("an op records the file and line it was called from") {
  Tape tape;
  Buffer x({2, 4}, DType::float64);
  Buffer w({4}, DType::float64);
  const int line = __LINE__ + 1;
  Var y = rmsnorm(tape.variable(x.tensor()), tape.variable(w.tensor()), 1e-6);
  CHECK(std::string(y.node().here.file).ends_with("rmsnorm_linear_test.cpp"));
  CHECK(y.node().here.line == line);
}

TEST_CASE("rmsnorm by hand: a row (3, 4) has mean square 12.5") {
  Tape tape;
  const Buffer x = of({1, 2}, {3, 4});
  const Buffer w = of({2}, {1, 10});
  const double rstd = 1 / std::sqrt(12.5 + 0.5);
  Var y = rmsnorm(tape.variable(x.tensor()), tape.variable(w.tensor()), 0.5);
  check_close(values_of(y.value()), {3 * rstd, 40 * rstd}, 1e-15);
  Var centered = rmsnorm(tape.variable(x.tensor()), tape.variable(w.tensor()), 0.5, 1.0);
  check_close(values_of(centered.value()), {6 * rstd, 44 * rstd}, 1e-15);
}

TEST_CASE("rmsnorm: fused, composed, fast and reference agree and pass gradcheck") {
  for (double offset : {0.0, 1.0}) {
    check_paths(rmsnorm_with(offset), list(uniform_values({5, 30, 24}, -2, 2, 1), uniform_values({24}, 0.5, 1.5, 2)),
                2e-5);
    for (const TapeOptions& options : {TapeOptions{}, composed_ops}) {
      check_gradients(rmsnorm_with(offset), list(uniform_values({2, 3, 5}, -2, 2, 1), uniform_values({5}, 0.5, 1.5, 2)),
                      options);
      check_gradients(rmsnorm_with(offset), list(uniform_values({7}, -2, 2, 1), uniform_values({7}, 0.5, 1.5, 2)),
                      options);
    }
  }
}

TEST_CASE("rmsnorm of a row of zeros is 0 with a finite gradient") {
  Tape tape;
  const Buffer x = of({1, 3}, {0, 0, 0}, DType::float32);
  const Buffer w = of({3}, {1, 1, 1}, DType::float32);
  Var v = tape.variable(x.tensor());
  Var y = rmsnorm(v, tape.variable(w.tensor()), 1e-6);
  tape.backward(sum_all(y));
  check_close(values_of(y.value()), {0, 0, 0}, 0);
  check_close(values_of(v.grad()), {1000, 1000, 1000}, 1e-5);
}

TEST_CASE("linear by hand: x W^T + b") {
  Tape tape;
  const Buffer x = of({1, 2}, {1, 2});
  const Buffer w = of({3, 2}, {1, 2, 3, 4, 5, 6});
  const Buffer b = of({3}, {10, 20, 30});
  Var y = linear(tape.variable(x.tensor()), tape.variable(w.tensor()), tape.variable(b.tensor()));
  check_close(values_of(y.value()), {15, 31, 47}, 0);
}

TEST_CASE("linear: fused, composed, fast and reference agree and pass gradcheck, with and without bias") {
  check_paths(linear_op, list(uniform_values({3, 50, 20}, -1, 1, 1), uniform_values({140, 20}, -1, 1, 2)), 3e-5);
  check_paths(
      linear_op,
      list(uniform_values({3, 50, 20}, -1, 1, 1), uniform_values({140, 20}, -1, 1, 2), uniform_values({140}, -1, 1, 3)),
      3e-5);
  for (const TapeOptions& options : {TapeOptions{}, composed_ops}) {
    check_gradients(linear_op, list(uniform_values({2, 3, 4}, -1, 1, 1), uniform_values({5, 4}, -1, 1, 2)), options);
    check_gradients(
        linear_op,
        list(uniform_values({2, 3, 4}, -1, 1, 1), uniform_values({5, 4}, -1, 1, 2), uniform_values({5}, -1, 1, 3)),
        options);
  }
}

TEST_CASE("linear adds to a gradient that another op began") {
  const Op twice = [](Tape&, const std::vector<Var>& v) {
    return add(linear(v[0], v[1], v[2]), linear(scale(v[0], 2), v[1], v[2]));
  };
  check_gradients(
      twice, list(uniform_values({3, 4}, -1, 1, 1), uniform_values({5, 4}, -1, 1, 2), uniform_values({5}, -1, 1, 3)));
}

TEST_CASE("values and gradients have the same bits for 1, 2, 3 and 4 threads, fused and composed") {
  const Op model = [](Tape&, const std::vector<Var>& v) {
    Var h = rmsnorm(v[0], v[1], 1e-6);
    Var scores = matmul(h, linear(h, v[2]), true);
    return matmul(softmax(scores), transpose(transpose(h, {0, 2, 1}), {0, 2, 1}));
  };
  const std::vector<Buffer> inputs = list(uniform_values({2, 200, 64}, -1, 1, 1), uniform_values({64}, 0.5, 1.5, 2),
                                          uniform_values({64, 64}, -1, 1, 3));
  for (const TapeOptions& options : {TapeOptions{}, composed_ops}) {
    Outcome first;
    for (int threads : {1, 2, 3, 4}) {
      CAPTURE(threads);
      set_num_threads(threads);
      const Outcome outcome = run(model, inputs, DType::float32, options);
      if (threads == 1) {
        first = outcome;
      }
      CHECK(outcome.value == first.value);
      CHECK(outcome.gradients == first.gradients);
    }
  }
  set_num_threads(2);
}
