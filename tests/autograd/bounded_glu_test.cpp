#include "core/kernels/exp.h"
#include "tests/autograd/op_test.h"

#include <doctest/doctest.h>

#include <limits>

using namespace minillm;
using namespace minillm::test;

namespace {

// The released models' numbers.
const BoundedGlu clamp = {.kind = BoundedGlu::Kind::clamp, .limit = 10};
const BoundedGlu oai = {.kind = BoundedGlu::Kind::oai, .limit = 7, .alpha = 1.702};
const BoundedGlu situ = {.kind = BoundedGlu::Kind::situ, .gate_bound = 4, .up_bound = 25};
/// With bounds that normal values often meet.
const BoundedGlu tight[] = {{.kind = BoundedGlu::Kind::clamp, .limit = 0.8},
                            {.kind = BoundedGlu::Kind::oai, .limit = 0.8, .alpha = 1.702},
                            {.kind = BoundedGlu::Kind::situ, .gate_bound = 0.8, .up_bound = 1.5}};

Op with(const BoundedGlu& unit) {
  return [unit](Tape&, const std::vector<Var>& inputs) { return gated_activation(inputs[0], unit); };
}

Outcome at(const BoundedGlu& unit, double gate, double up, DType dtype = DType::float64) {
  return run(with(unit), list(of({1, 2}, {gate, up})), dtype);
}

double value_at(const BoundedGlu& unit, double gate, double up, DType dtype = DType::float64) {
  return at(unit, gate, up, dtype).value[0];
}

/// Normal values of which none lies within 1e-3 of a limit.
std::vector<Buffer> away_from_limits(const Shape& shape, double limit) {
  std::vector<Buffer> inputs = list(normal_values(shape, 5));
  double* x = inputs[0].tensor().as<double>();
  for (int64_t i = 0; i < inputs[0].tensor().numel(); ++i) {
    x[i] = std::abs(std::abs(x[i]) - limit) < 1e-3 ? x[i] * 1.01 : x[i];
  }
  return inputs;
}

}  // namespace

TEST_CASE("bounded units have the values of their released models") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto is = [](double value) { return doctest::Approx(value).epsilon(1e-5); };
    CHECK(value_at(clamp, 10, 10, dtype) == is(99.9955));
    CHECK(value_at(clamp, 100, 100, dtype) == is(99.9955));
    CHECK(value_at(clamp, 1, 1, dtype) == is(0.73106));
    CHECK(value_at(clamp, 1, -100, dtype) == is(-7.3106));
    CHECK(value_at(oai, 10, 10, dtype) == is(55.9996));
    CHECK(value_at(oai, 7, 0, dtype) == is(6.99995));
    CHECK(value_at(oai, 1, -100, dtype) == is(-5.07477));  // sigmoid(1.702) * (1 - 7)
    CHECK(value_at(situ, 1, 1, dtype) == is(0.71582));
    CHECK(value_at(situ, 10, 10, dtype) == is(37.4846));
    CHECK(value_at(situ, 100, 100, dtype) == is(99.9329));
    for (const BoundedGlu& unit : {clamp, oai, situ}) {
      CHECK(std::abs(value_at(unit, 1e30, -1e30, dtype)) <= 100);
      CHECK(std::isnan(value_at(unit, nan, 1, dtype)));
      CHECK(std::isnan(value_at(unit, 1, nan, dtype)));
    }
  }
}

TEST_CASE("no gradient passes a limit") {
  for (const BoundedGlu& unit : {clamp, oai}) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      const std::vector<double> both_beyond = at(unit, 11, -11, dtype).gradients[0];
      CHECK(both_beyond[0] == 0);
      CHECK(both_beyond[1] == 0);
      const std::vector<double> at_limit = at(unit, unit.limit, -unit.limit, dtype).gradients[0];
      CHECK(at_limit[0] != 0);
      CHECK(at_limit[1] != 0);
    }
  }
}

TEST_CASE("bounded_glu: fused, composed, reference and fast agree") {
  const std::vector<Buffer> inputs = away_from_limits({7, 3, 2 * 301}, 0.8);
  for (const BoundedGlu& unit : tight) {
    CAPTURE(static_cast<int>(unit.kind));
    CHECK(fused_against_composed(with(unit), inputs) < 1e-12);
    CHECK(float_against_double(with(unit), inputs) < 1e-6);
    CHECK(float_against_double(with(unit), inputs, reference_kernels) < 1e-6);
    CHECK(same_bits_for_all_threads(with(unit), inputs));
  }
}

TEST_CASE("bounded_glu: gradients against differences") {
  for (const BoundedGlu& unit : tight) {
    CAPTURE(static_cast<int>(unit.kind));
    for (const TapeOptions& options : {TapeOptions{}, composed_ops}) {
      check_gradients(with(unit), away_from_limits({4, 12}, 0.8), options);
    }
  }
}

TEST_CASE("an op knows how far its inputs are from a kink") {
  Tape tape;
  const Buffer x = of({1, 4}, {0.5, -3, 0.7, 0.79});
  const Var leaf = tape.variable(x.tensor());
  const auto distance = [&](Var y) { return y.node().distance_to_kink(tape); };
  CHECK(distance(gated_activation(leaf, tight[0])) ==
        doctest::Approx(0.01));  // up's 0.79 from 0.8; gate's -3 has no limit
  CHECK(distance(gated_activation(leaf, tight[2])) == HUGE_VAL);
  CHECK(distance(activate(leaf, Activation::relu)) == doctest::Approx(0.5));
  CHECK(distance(activate(leaf, Activation::silu)) == HUGE_VAL);
  CHECK(distance(gated_activation(leaf, Activation::relu)) == doctest::Approx(0.5));
  CHECK(distance(maximum(leaf, tape.scalar(0.75, DType::float64))) == doctest::Approx(0.04));
}

TEST_CASE("fast_tanh is accurate in float") {
  double worst = 0;
  for (float x = -12; x <= 12; x += 0.00037F) {
    const double exact = std::tanh(static_cast<double>(x));
    const double error = std::abs(static_cast<double>(kernels::fast_tanh(x)) - exact);
    worst = std::max(worst, error / std::max(std::abs(exact), 1e-30));
  }
  CHECK(worst < 2e-7);
  CHECK(kernels::fast_tanh(0.0F) == 0.0F);
  CHECK(kernels::fast_tanh(1e-20F) == 1e-20F);
  CHECK(kernels::fast_tanh(1000.0F) == 1.0F);
  CHECK(kernels::fast_tanh(-1000.0F) == -1.0F);
  CHECK(std::isnan(kernels::fast_tanh(std::numeric_limits<float>::quiet_NaN())));
}
