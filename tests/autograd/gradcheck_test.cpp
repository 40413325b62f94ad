#include "autograd/op_support.h"
#include "tests/autograd/op_test.h"

#include <cmath>

using namespace minillm;
using namespace minillm::test;

namespace {

/// y = x^2 with a backward that is wrong by `fault`; 1 is right.
struct SquareNode final : Node {
  NodeId x;
  double fault;
  int64_t only;  // -1, or the one element the fault is in

  void backward(Tape& tape) override {
    const Tensor dx = tape.gradient(x);
    const Tensor& x_value = tape.value(x);
    for (int64_t i = 0; i < dx.numel(); ++i) {
      const double factor = only < 0 || only == i ? fault : 1.0;
      dx.as<double>()[i] += factor * 2 * x_value.at(i) * grad.at(i);
    }
  }
};

Op square(double fault, int64_t only = -1) {
  return [fault, only](Tape& tape, const std::vector<Var>& v) {
    auto& node = tape.make<SquareNode>("square", {v[0]}, v[0].shape(), DType::float64, {});
    node.x = v[0].id();
    node.fault = fault;
    node.only = only;
    for (int64_t i = 0; i < node.value.numel(); ++i) {
      node.value.as<double>()[i] = v[0].value().at(i) * v[0].value().at(i);
    }
    return tape.var(node);
  };
}

/// softmax with a backward scaled by a factor: the sum of a softmax is constant, so a loss that is a plain sum has
/// gradient 0 whatever the factor.
struct ScaledSoftmaxNode final : Node {
  NodeId y;
  double fault;

  void backward(Tape& tape) override {
    const Tensor dy = tape.gradient(y);
    for (int64_t i = 0; i < dy.numel(); ++i) {
      dy.as<double>()[i] += fault * grad.at(i);
    }
  }
};

Op scaled_softmax(double fault) {
  return [fault](Tape& tape, const std::vector<Var>& v) {
    Var y = softmax(v[0]);
    auto& node = tape.make<ScaledSoftmaxNode>("scaled", {y}, y.shape(), DType::float64, {});
    node.y = y.id();
    node.fault = fault;
    copy_values(y.value(), node.value);
    return tape.var(node);
  };
}

double worst_of(const Op& op, const std::vector<Buffer>& inputs) {
  std::vector<Tensor> tensors = tensors_of(inputs);
  return worst_error(gradcheck_op(op, tensors));
}

}  // namespace

TEST_CASE("gradcheck passes a right backward and fails a wrong one") {
  CHECK(worst_of(square(1), list(uniform_values({4, 5}, -2, 2, 1))) < 1e-6);
  CHECK(worst_of(square(7), list(uniform_values({4, 5}, -2, 2, 1))) > 0.5);
  CHECK(worst_of(square(0), list(uniform_values({4, 5}, -2, 2, 1))) > 0.9);
  CHECK(worst_of(square(-1), list(uniform_values({4, 5}, -2, 2, 1))) > 0.9);
  CHECK(worst_of(square(1 + 1e-5), list(uniform_values({4, 5}, -2, 2, 1))) > 5e-6);
}

TEST_CASE("a fault in one element of many is seen by the directions") {
  CHECK(worst_of(square(7, 123), list(uniform_values({20, 20}, 1, 2, 1))) > 1e-3);
}

TEST_CASE("a factor 7 in softmax's backward is seen through the projection") {
  CHECK(worst_of(scaled_softmax(1), list(uniform_values({3, 6}, -2, 2, 1))) < 1e-6);
  CHECK(worst_of(scaled_softmax(7), list(uniform_values({3, 6}, -2, 2, 1))) > 0.5);
}

TEST_CASE("gradcheck restores the inputs and names the worst place") {
  const Buffer x = uniform_values({4, 5}, -2, 2, 1);
  const std::vector<double> before = values_of(x.tensor());
  std::vector<Tensor> inputs = {x.tensor()};
  const std::vector<GradcheckResult> results = gradcheck_op(square(7), inputs);
  CHECK(values_of(x.tensor()) == before);
  REQUIRE(results.size() == 1);
  CHECK(results[0].name == "input 0");
  CHECK(results[0].analytic == doctest::Approx(7 * results[0].numeric).epsilon(1e-6));
}

TEST_CASE("a loss with a gradient that is zero passes, one that is not finite fails") {
  const Op constant = [](Tape&, const std::vector<Var>& v) { return sub(scale(v[0], 3), scale(v[0], 3)); };
  CHECK(worst_of(constant, list(uniform_values({5}, -2, 2, 1))) < 1e-6);
  const Op rows_of_one = [](Tape&, const std::vector<Var>& v) { return sum(softmax(v[0]), {-1}); };
  CHECK(worst_of(rows_of_one, list(uniform_values({2, 5}, -2, 2, 1))) < 1e-6);
  const Op not_finite = [](Tape&, const std::vector<Var>& v) { return log(v[0]); };
  CHECK(worst_of(not_finite, list(of({2}, {-1, -1}))) > 1);
}

TEST_CASE("gradcheck of a loss function: a gradient that was forgotten is found") {
  const Buffer x = uniform_values({6}, -1, 1, 1);
  const Buffer gradient({6}, DType::float64);
  const auto loss = [&x]() {
    double sum = 7;
    for (int64_t i = 0; i < 6; ++i) {
      sum += std::sin(x.tensor().at(i));
    }
    return sum;
  };
  CHECK(worst_error(gradcheck({{"x", x.tensor(), gradient.tensor()}}, loss)) == doctest::Approx(1));
  for (int64_t i = 0; i < 6; ++i) {
    set(gradient.tensor(), i, std::cos(x.tensor().at(i)));
  }
  CHECK(worst_error(gradcheck({{"x", x.tensor(), gradient.tensor()}}, loss)) < 1e-7);
}

TEST_CASE("a small gradient beside a large loss: rounding is no error, one part in a hundred is") {
  for (const double fault : {1.0, 1.01}) {
    const Buffer x({3}, DType::float64);
    const Buffer gradient({3}, DType::float64);
    const double weights[] = {1e-6, 3e-9, -2e-7};
    for (int i = 0; i < 3; ++i) {
      x.tensor().as<double>()[i] = 0.7 - i;
      gradient.tensor().as<double>()[i] = fault * weights[i] * std::cos(0.7 - i);
    }
    const auto loss = [&] {
      double sum = 3;
      for (int i = 0; i < 3; ++i) {
        sum += weights[i] * std::sin(x.tensor().at(i));
      }
      return sum;
    };
    const double error = worst_error(gradcheck({{"x", x.tensor(), gradient.tensor()}}, loss));
    CAPTURE(fault);
    CAPTURE(error);
    CHECK((error < 1e-6) == (fault == 1.0));
  }
}
