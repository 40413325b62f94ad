#include "tests/autograd/op_test.h"

#include <limits>
#include <utility>

using namespace minillm;
using namespace minillm::test;

namespace {

using Binary = Var (*)(Var, Var, Here);
using Unary = Var (*)(Var, Here);

Op op_of(Binary f) {
  return [f](Tape&, const std::vector<Var>& x) { return f(x[0], x[1], {}); };
}

/// Every pattern of stretching: none, a row, a column, a scalar, both sides, inner axes, equal but for leading ones.
const std::vector<std::pair<Shape, Shape>>& shape_pairs() {
  static const std::vector<std::pair<Shape, Shape>> pairs = {{{3, 4}, {3, 4}},
                                                             {{3, 4}, {4}},
                                                             {{3, 4}, {3, 1}},
                                                             {{4}, {2, 3, 4}},
                                                             {{2, 3, 1}, {2, 3, 4}},
                                                             {{}, {2, 3}},
                                                             {{2, 1}, {1, 3}},
                                                             {{2, 1, 4}, {3, 1}},
                                                             {{2, 3, 4, 2}, {3, 1, 2}},
                                                             {{2, 3, 4}, {2, 1, 4}},
                                                             {{1}, {1}},
                                                             {{1, 3}, {3}},
                                                             {{}, {}},
                                                             {{2, 1, 3, 1}, {2, 1, 3}}};
  return pairs;
}

/// Element i of the common shape, read from a tensor by the definition of broadcasting.
double element(const Tensor& x, const Shape& common, int64_t i) {
  int64_t place = 0;
  int64_t step = 1;
  for (int from_end = 1; from_end <= common.rank(); ++from_end) {
    const int64_t coordinate = i % common[-from_end];
    i /= common[-from_end];
    if (from_end <= x.shape.rank()) {
      const int64_t extent = x.shape[-from_end];
      place += (extent == 1 ? 0 : coordinate) * step;
      step *= extent;
    }
  }
  return x.at(place);
}

void check_values(Binary f, double (*want)(double, double), const Shape& a_shape, const Shape& b_shape) {
  const Buffer a = uniform_values(a_shape, 0.5, 2, 1);
  const Buffer b = uniform_values(b_shape, 0.5, 2, 2);
  const Shape common = broadcast_shapes(a_shape, b_shape);
  Tape tape;
  Var y = f(tape.variable(a.tensor()), tape.variable(b.tensor()), {});
  CHECK(y.shape() == common);
  std::vector<double> expected;
  for (int64_t i = 0; i < common.numel(); ++i) {
    expected.push_back(want(element(a.tensor(), common, i), element(b.tensor(), common, i)));
  }
  check_close(values_of(y.value()), expected, 0);
}

struct BinaryCase {
  const char* name;
  Binary op;
  double (*want)(double, double);
};

const std::vector<BinaryCase>& binary_cases() {
  static const std::vector<BinaryCase> cases = {{"add", add, [](double a, double b) { return a + b; }},
                                                {"sub", sub, [](double a, double b) { return a - b; }},
                                                {"mul", mul, [](double a, double b) { return a * b; }},
                                                {"div", div, [](double a, double b) { return a / b; }},
                                                {"maximum", maximum, [](double a, double b) { return a > b ? a : b; }}};
  return cases;
}

struct UnaryCase {
  const char* name;
  Op op;
  double (*want)(double);
  double low;
  double high;
};

Op op_of(Unary f) {
  return [f](Tape&, const std::vector<Var>& x) { return f(x[0], {}); };
}

const std::vector<UnaryCase>& unary_cases() {
  static const std::vector<UnaryCase> cases = {
      {"scale", [](Tape&, const std::vector<Var>& x) { return scale(x[0], -2.5); }, [](double x) { return -2.5 * x; },
       -2, 2},
      {"add_scalar", [](Tape&, const std::vector<Var>& x) { return add_scalar(x[0], 0.75); },
       [](double x) { return x + 0.75; }, -2, 2},
      {"pow -0.5", [](Tape&, const std::vector<Var>& x) { return pow(x[0], -0.5); },
       [](double x) { return 1 / std::sqrt(x); }, 0.5, 2},
      {"pow 3", [](Tape&, const std::vector<Var>& x) { return pow(x[0], 3); }, [](double x) { return x * x * x; }, -2,
       2},
      {"exp", op_of(exp), std::exp, -2, 2},
      {"log", op_of(log), std::log, 0.5, 2},
      {"sqrt", op_of(sqrt), std::sqrt, 0.5, 2},
      {"tanh", op_of(tanh), std::tanh, -2, 2},
      {"sigmoid", op_of(sigmoid), [](double x) { return 1 / (1 + std::exp(-x)); }, -4, 4},
      {"softplus", op_of(softplus), [](double x) { return std::log(1 + std::exp(x)); }, -4, 4},
      {"erf", op_of(erf), std::erf, -2, 2}};
  return cases;
}

}  // namespace

TEST_CASE("binary ops broadcast as the definition says") {
  for (const BinaryCase& c : binary_cases()) {
    for (const auto& pair : shape_pairs()) {
      const Shape& a = pair.first;
      const Shape& b = pair.second;
      CAPTURE(c.name);
      CAPTURE(to_string(a));
      CAPTURE(to_string(b));
      check_values(c.op, c.want, a, b);
      check_values(c.op, c.want, b, a);
    }
  }
}

TEST_CASE("binary ops over several chunks and threads") {
  for (const BinaryCase& c : binary_cases()) {
    CAPTURE(c.name);
    check_values(c.op, c.want, {300, 70}, {300, 70});
    check_values(c.op, c.want, {300, 70}, {70});
    check_values(c.op, c.want, {300, 70}, {300, 1});
    check_values(c.op, c.want, {30, 1, 70}, {10, 1});
  }
}

TEST_CASE("binary ops pass gradcheck for every pattern of broadcasting") {
  for (const BinaryCase& c : binary_cases()) {
    for (const auto& pair : shape_pairs()) {
      const Shape& a = pair.first;
      const Shape& b = pair.second;
      CAPTURE(c.name);
      CAPTURE(to_string(a));
      CAPTURE(to_string(b));
      check_gradients(op_of(c.op), list(uniform_values(a, 0.5, 2, 3), uniform_values(b, 0.5, 2, 4)));
      check_gradients(op_of(c.op), list(uniform_values(b, 0.5, 2, 5), uniform_values(a, 0.5, 2, 6)));
    }
    check_gradients(op_of(c.op), list(uniform_values({150, 70}, 0.5, 2, 7), uniform_values({70}, 0.5, 2, 8)));
    check_gradients(op_of(c.op), list(uniform_values({150, 70}, 0.5, 2, 7), uniform_values({150, 1}, 0.5, 2, 8)));
  }
}

TEST_CASE("both operands may be the same value") {
  const Op square = [](Tape&, const std::vector<Var>& x) { return mul(x[0], x[0]); };
  check_gradients(square, list(uniform_values({3, 4}, -2, 2, 1)));
  const Op one = [](Tape&, const std::vector<Var>& x) { return div(x[0], x[0]); };
  CHECK(run(one, list(uniform_values({5}, 1, 2, 1)), DType::float64).gradients[0][0] == doctest::Approx(0));
}

TEST_CASE("maximum splits the gradient where operands are equal, and keeps NaN") {
  const Buffer a = of({4}, {1, 2, 3, -1});
  const Buffer b = of({4}, {2, 2, 1, -1});
  Tape tape;
  Var va = tape.variable(a.tensor());
  Var vb = tape.variable(b.tensor());
  Var y = maximum(va, vb);
  tape.backward(sum_all(y));
  check_close(values_of(y.value()), {2, 2, 3, -1}, 0);
  check_close(values_of(va.grad()), {0, 0.5, 1, 0.5}, 0);
  check_close(values_of(vb.grad()), {1, 0.5, 0, 0.5}, 0);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Buffer poisoned = of({2}, {nan, 1});
  const Buffer other = of({2}, {1, nan});
  Var m = maximum(tape.constant(poisoned.tensor()), tape.constant(other.tensor()));
  CHECK(std::isnan(m.value().at(0)));
  CHECK(std::isnan(m.value().at(1)));
}

TEST_CASE("unary ops: values, gradients, float against double") {
  for (const UnaryCase& c : unary_cases()) {
    CAPTURE(c.name);
    const Buffer x = uniform_values({3, 5}, c.low, c.high, 1);
    Tape tape;
    Var y = c.op(tape, {tape.variable(x.tensor())});
    CHECK(y.shape() == Shape{3, 5});
    std::vector<double> want;
    for (double value : values_of(x.tensor())) {
      want.push_back(c.want(value));
    }
    check_close(values_of(y.value()), want, 1e-14);
    check_gradients(c.op, list(uniform_values({3, 5}, c.low, c.high, 2)));
    const std::vector<Buffer> inputs = list(uniform_values({3, 5}, c.low, c.high, 1));
    check_close(run(c.op, inputs, DType::float32), run(c.op, inputs, DType::float64), 2e-6);
  }
}

TEST_CASE("softplus and its gradient keep their digits from -80 to 80, on every path") {
  for (const TapeOptions& options :
       {TapeOptions{}, TapeOptions{.kernels = Kernels::reference}, TapeOptions{.ops = Ops::composed}}) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      const double tolerance = dtype == DType::float64 ? 1e-15 : 4e-7;
      Buffer x({161}, dtype);
      for (int64_t i = 0; i < 161; ++i) {
        x.tensor().set(i, static_cast<double>(i - 80));
      }
      Tape tape(options);
      Var input = tape.variable(x.tensor());
      Var y = softplus(input);
      tape.backward(sum_all(y));
      for (int64_t i = 0; i < 161; ++i) {
        const auto at = static_cast<double>(i - 80);
        CAPTURE(at);
        const double value = std::log1p(std::exp(at));
        const double slope = 1 / (1 + std::exp(-at));
        CHECK(std::abs(y.value().at(i) - value) <= tolerance * value);
        CHECK(std::abs(input.grad().at(i) - slope) <= tolerance * slope);
      }
    }
  }
}

TEST_CASE("sigmoid and its gradient stay finite far out; pow 0 has no gradient at 0") {
  Tape tape;
  const Buffer x = of({2}, {-1000, 1000});
  Var v = tape.variable(x.tensor());
  Var y = sigmoid(v);
  tape.backward(sum_all(y));
  check_close(values_of(y.value()), {0, 1}, 0);
  check_close(values_of(v.grad()), {0, 0}, 0);
  const Buffer zero = of({1}, {0});
  Var z = tape.variable(zero.tensor());
  tape.backward(sum_all(mul(pow(z, 0), add_scalar(z, 1))));
  check_close(values_of(z.grad()), {1}, 0);
}
