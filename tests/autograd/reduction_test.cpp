#include "tests/autograd/op_test.h"

#include <limits>

using namespace minillm;
using namespace minillm::test;

namespace {

std::vector<double> count_to(int n) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i) {
    values.push_back(i);
  }
  return values;
}

}  // namespace

TEST_CASE("sum and mean over any axes, which stay with extent 1") {
  Tape tape;
  const Buffer buffer = of({2, 3, 4}, count_to(24));
  Var x = tape.variable(buffer.tensor());
  CHECK(sum(x, {1}).shape() == Shape{2, 1, 4});
  check_close(values_of(sum(x, {1}).value()), {12, 15, 18, 21, 48, 51, 54, 57}, 0);
  check_close(values_of(sum(x, {0}).value()), {12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34}, 0);
  check_close(values_of(sum(x, {-1}).value()), {6, 22, 38, 54, 70, 86}, 0);
  CHECK(sum(x, {0, 2}).shape() == Shape{1, 3, 1});
  check_close(values_of(sum(x, {0, 2}).value()), {60, 92, 124}, 0);
  check_close(values_of(sum(x, {}).value()), count_to(24), 0);
  check_close(values_of(mean(x, {0, 2}).value()), {7.5, 11.5, 15.5}, 1e-15);
  check_close(values_of(mean(x, {-1}).value()), {1.5, 5.5, 9.5, 13.5, 17.5, 21.5}, 1e-15);
  CHECK(sum_all(x).shape() == Shape{});
  CHECK(sum_all(x).item() == 276);
}

TEST_CASE("sums pass gradcheck for every set of axes") {
  for (const Axes& axes : {Axes{}, Axes{0}, Axes{1}, Axes{2}, Axes{0, 1}, Axes{0, 2}, Axes{1, 2}, Axes{0, 1, 2}}) {
    CAPTURE(axes.size());
    const Op sum_axes = [&axes](Tape&, const std::vector<Var>& x) { return sum(x[0], axes); };
    const Op mean_axes = [&axes](Tape&, const std::vector<Var>& x) { return mean(x[0], axes); };
    check_gradients(sum_axes, list(uniform_values({2, 3, 4}, -1, 1, 1)));
    check_gradients(mean_axes, list(uniform_values({2, 3, 4}, -1, 1, 2)));
  }
  check_gradients([](Tape&, const std::vector<Var>& x) { return sum_all(x[0]); },
                  list(uniform_values({3, 5}, -1, 1, 3)));
}

TEST_CASE("a float sum over many elements keeps its digits") {
  Buffer ones({1000, 1000}, DType::float32);
  for (int64_t i = 0; i < ones.tensor().numel(); ++i) {
    set(ones.tensor(), i, 0.1);
  }
  Tape tape;
  CHECK(sum_all(tape.constant(ones.tensor())).item() == doctest::Approx(100000.0).epsilon(1e-6));
}

TEST_CASE("max takes the largest, gives the gradient to the first of equals, keeps NaN") {
  const Buffer buffer = of({2, 3}, {1, 5, 5, -3, -4, -3});
  Tape tape;
  Var x = tape.variable(buffer.tensor());
  Var y = max(x, 1);
  CHECK(y.shape() == Shape{2, 1});
  tape.backward(sum_all(y));
  check_close(values_of(y.value()), {5, -3}, 0);
  check_close(values_of(x.grad()), {0, 1, 0, 1, 0, 0}, 0);
  check_close(values_of(max(x, 0).value()), {1, 5, 5}, 0);
  const Buffer poisoned = of({3}, {1, std::numeric_limits<double>::quiet_NaN(), 2});
  CHECK(std::isnan(max(tape.constant(poisoned.tensor()), 0).item()));
}

TEST_CASE("max passes gradcheck along every axis") {
  for (int axis : {0, 1, 2, -1}) {
    CAPTURE(axis);
    check_gradients([axis](Tape&, const std::vector<Var>& x) { return max(x[0], axis); },
                    list(uniform_values({3, 4, 5}, -1, 1, 11)));
  }
}

TEST_CASE("softmax and log_softmax: values, gradients, paths") {
  const double e1 = std::exp(1.0);
  const double e2 = std::exp(2.0);
  Tape tape;
  const Buffer buffer = of({2, 3}, {0, 1, 2, 1002, 1001, 1000});
  Var x = tape.variable(buffer.tensor());
  const double s = 1 + e1 + e2;
  check_close(values_of(softmax(x).value()), {1 / s, e1 / s, e2 / s, e2 / s, e1 / s, 1 / s}, 1e-14);
  check_close(values_of(log_softmax(x).value()),
              {-std::log(s), 1 - std::log(s), 2 - std::log(s), 2 - std::log(s), 1 - std::log(s), -std::log(s)}, 1e-13);
  const Op soft = [](Tape&, const std::vector<Var>& v) { return softmax(v[0]); };
  const Op log_soft = [](Tape&, const std::vector<Var>& v) { return log_softmax(v[0]); };
  for (const Op& op : {soft, log_soft}) {
    check_gradients(op, list(uniform_values({2, 3, 7}, -3, 3, 1)));
    check_gradients(op, list(uniform_values({5}, -3, 3, 1)));
    const std::vector<Buffer> inputs = list(uniform_values({20, 37}, -3, 3, 2));
    const Outcome exact = run(op, inputs, DType::float64);
    check_close(run(op, inputs, DType::float32), exact, 3e-6);
    check_close(run(op, inputs, DType::float32, reference_kernels), exact, 3e-6);
  }
}

TEST_CASE("log_softmax stays finite where a probability underflows") {
  struct Case {
    std::vector<double> logits;
    int32_t target;
    double loss;
    std::vector<double> gradient;
  };
  for (const Case& c : {Case{{-431, 279, 427}, 0, 858, {-1, 0, 1}}, Case{{0, -200}, 1, 200, {1, -1}},
                        Case{{0, -1e30}, 1, 1e30, {1, -1}}}) {
    for (DType dtype : {DType::float32, DType::float64}) {
      for (Kernels kernels : {Kernels::fast, Kernels::reference}) {
        const int64_t n = static_cast<int64_t>(c.logits.size());
        Tape tape({.kernels = kernels});
        const Buffer buffer = of({1, n}, c.logits, dtype);
        Var logits = tape.variable(buffer.tensor());
        const std::vector<int32_t> target = {c.target};
        Var loss = scale(gather(log_softmax(logits), target), -1);
        tape.backward(sum_all(loss));
        check_close(values_of(loss.value()), {c.loss}, 1e-7);
        check_close(values_of(logits.grad()), c.gradient, 1e-7);
      }
    }
  }
}

TEST_CASE("a fully masked row of softmax is 0 with a finite gradient") {
  const double inf = std::numeric_limits<double>::infinity();
  Tape tape;
  const Buffer buffer = of({2, 2}, {-inf, -inf, 0, -inf});
  Var x = tape.variable(buffer.tensor());
  Var y = softmax(x);
  tape.backward(sum_all(mul(y, y)));
  check_close(values_of(y.value()), {0, 0, 1, 0}, 0);
  check_close(values_of(x.grad()), {0, 0, 0, 0}, 0);
}
