#include "autograd/ops.h"
#include "core/kernels/normal.h"
#include "tests/autograd/op_test.h"

#include <doctest/doctest.h>

#include <limits>

using namespace minillm;
using namespace minillm::test;

namespace {

/// Those that are 0 at 0 and far below, and x far above.
constexpr Activation rectifiers[] = {Activation::relu, Activation::silu, Activation::gelu, Activation::gelu_tanh};
constexpr Activation kinds[] = {Activation::relu,      Activation::silu,    Activation::gelu,
                                Activation::gelu_tanh, Activation::sigmoid, Activation::identity};

Op act(Activation kind) {
  return [kind](Tape&, const std::vector<Var>& inputs) { return activate(inputs[0], kind); };
}

Op gated(Activation kind) {
  return [kind](Tape&, const std::vector<Var>& inputs) { return gated_activation(inputs[0], kind); };
}

/// Values at least `gap` away from 0, where relu has a kink.
std::vector<Buffer> away_from_zero(const Shape& shape, double spread, double gap = 1e-3) {
  std::vector<Buffer> inputs;
  inputs.push_back(normal_values(shape, 11, spread));
  double* x = inputs[0].tensor().as<double>();
  for (int64_t i = 0; i < inputs[0].tensor().numel(); ++i) {
    x[i] = std::abs(x[i]) < gap ? gap : x[i];
  }
  return inputs;
}

double value_at(double x, Activation kind, DType dtype = DType::float64) {
  std::vector<Buffer> inputs;
  inputs.emplace_back(Shape{1}, DType::float64);
  *inputs[0].tensor().as<double>() = x;
  return run(act(kind), inputs, dtype).value[0];
}

/// x from -6 to 6 in steps of 0.001.
Buffer grid() {
  Buffer x({12001}, DType::float64);
  for (int i = 0; i <= 12000; ++i) {
    x.tensor().as<double>()[i] = -6 + i * 0.001;
  }
  return x;
}

std::vector<double> on_grid(Activation kind) {
  Tape tape;
  const Buffer x = grid();
  return values_of(activate(tape.constant(x.tensor()), kind).value());
}

}  // namespace

TEST_CASE("SwiGLU has no bound: 99.995 at gate = up = 10") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const double value = run(gated(Activation::silu), list(of({1, 2}, {10, 10})), dtype).value[0];
    CHECK(value == doctest::Approx(99.9954602).epsilon(1e-6));
    CHECK(run(gated(Activation::silu), list(of({1, 2}, {100, 100})), dtype).value[0] == doctest::Approx(1e4));
  }
}

TEST_CASE("relu's slope at exactly 0 is 0, fused and composed, as in PyTorch") {
  for (const Ops ops : {Ops::fused, Ops::composed}) {
    for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
      for (const DType dtype : {DType::float32, DType::float64}) {
        CAPTURE(to_string(dtype));
        Tape tape({.kernels = kernels, .ops = ops});
        const Buffer x({6}, dtype);
        const double values[] = {0.0, -0.0, 2.0, -3.0, 1e-30, -1e-30};
        copy_values({const_cast<double*>(values), {6}, DType::float64}, x.tensor());
        const Var leaf = tape.variable(x.tensor());
        const Var y = activate(leaf, Activation::relu);
        tape.backward(sum_all(y));
        for (int64_t i = 0; i < 6; ++i) {
          CHECK(y.value().at(i) == std::max(x.tensor().at(i), 0.0));
          CHECK(leaf.grad().at(i) == (values[i] > 0 ? 1 : 0));
        }
      }
    }
  }
}

TEST_CASE("activations have their published values") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const double tolerance = dtype == DType::float32 ? 1e-6 : 1e-7;
    CHECK(value_at(1, Activation::gelu, dtype) == doctest::Approx(0.8413447461).epsilon(tolerance));
    CHECK(value_at(-1, Activation::gelu, dtype) == doctest::Approx(-0.1586552539).epsilon(tolerance));
    CHECK(value_at(1, Activation::silu, dtype) == doctest::Approx(0.7310585786).epsilon(tolerance));
    CHECK(value_at(1, Activation::gelu_tanh, dtype) == doctest::Approx(0.8411919906).epsilon(tolerance));
    CHECK(value_at(3, Activation::relu, dtype) == 3);
    CHECK(value_at(-3, Activation::relu, dtype) == 0);
    CHECK(value_at(1, Activation::sigmoid, dtype) == doctest::Approx(0.7310585786).epsilon(tolerance));
    CHECK(value_at(-3, Activation::identity, dtype) == -3);
    for (const Activation kind : rectifiers) {
      CHECK(value_at(0, kind, dtype) == 0);
    }
  }
}

TEST_CASE("gelu_tanh differs from gelu by at most 4.73e-4, near |x| = 2.70") {
  const std::vector<double> exact = on_grid(Activation::gelu);
  const std::vector<double> approximate = on_grid(Activation::gelu_tanh);
  double largest = 0;
  double where = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    if (std::abs(exact[i] - approximate[i]) > largest) {
      largest = std::abs(exact[i] - approximate[i]);
      where = std::abs(-6 + static_cast<double>(i) * 0.001);
    }
  }
  CHECK(largest == doctest::Approx(4.73e-4).epsilon(2e-3));
  CHECK(where == doctest::Approx(2.70).epsilon(0.01));
}

TEST_CASE("silu's smallest value is -0.2785 at x = -1.2785") {
  const std::vector<double> y = on_grid(Activation::silu);
  const auto smallest = std::min_element(y.begin(), y.end());
  CHECK(*smallest == doctest::Approx(-0.278465).epsilon(1e-5));
  CHECK(-6 + static_cast<double>(smallest - y.begin()) * 0.001 == doctest::Approx(-1.278).epsilon(1e-3));
}

TEST_CASE("activate: fused, composed, reference and fast agree") {
  const std::vector<Buffer> inputs = away_from_zero({5, 4001}, 3);
  for (const Activation kind : kinds) {
    CAPTURE(static_cast<int>(kind));
    CHECK(fused_against_composed(act(kind), inputs) < 1e-12);
    CHECK(float_against_double(act(kind), inputs) < 2e-6);
    CHECK(float_against_double(act(kind), inputs, reference_kernels) < 1e-6);
  }
}

TEST_CASE("gated_activation: fused, composed, reference and fast agree") {
  const std::vector<Buffer> inputs = away_from_zero({7, 3, 2 * 301}, 2);
  for (const Activation kind : kinds) {
    CAPTURE(static_cast<int>(kind));
    CHECK(fused_against_composed(gated(kind), inputs) < 1e-12);
    CHECK(float_against_double(gated(kind), inputs) < 1e-6);
    CHECK(float_against_double(gated(kind), inputs, reference_kernels) < 1e-6);
  }
}

TEST_CASE("gated_activation reads the gate first") {
  Tape tape;
  Buffer x({1, 4}, DType::float64);
  const double values[] = {-1, 2, 10, 20};
  std::copy_n(values, 4, x.tensor().as<double>());
  const Var y = gated_activation(tape.constant(x.tensor()), Activation::relu);
  CHECK(values_of(y.value()) == std::vector<double>{0, 40});
}

TEST_CASE("activations: gradients against differences") {
  for (const Activation kind : kinds) {
    CAPTURE(static_cast<int>(kind));
    const std::vector<Buffer> inputs = away_from_zero({4, 6}, 2);
    for (const TapeOptions& options : {TapeOptions{}, composed_ops}) {
      check_gradients(act(kind), inputs, options);
      check_gradients(gated(kind), inputs, options);
    }
  }
}

TEST_CASE("activations: the same bits for 1, 2, 3 and 4 threads") {
  for (const Activation kind : kinds) {
    CHECK(same_bits_for_all_threads(act(kind), away_from_zero({40000}, 2)));
    CHECK(same_bits_for_all_threads(gated(kind), away_from_zero({100, 90}, 2)));
  }
}

TEST_CASE("no activation hides a NaN") {
  for (const Activation kind : kinds) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      CHECK(std::isnan(value_at(std::numeric_limits<double>::quiet_NaN(), kind, dtype)));
    }
  }
}

TEST_CASE("rectifiers stay finite for large inputs") {
  for (const Activation kind : rectifiers) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      for (const double x : {-1e4, -89.0, 89.0, 1e4}) {
        CHECK(value_at(x, kind, dtype) == doctest::Approx(x > 0 ? x : 0).epsilon(1e-6));
        std::vector<Buffer> inputs;
        inputs.emplace_back(Shape{1}, DType::float64);
        *inputs[0].tensor().as<double>() = x;
        const double dy = projection_weights(0, 1)[0];
        CHECK(run(act(kind), inputs, dtype).gradients[0][0] == doctest::Approx(x > 0 ? dy : 0).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("the fast normal distribution is accurate in float") {
  double absolute = 0;
  double relative = 0;
  double density = 0;
  for (float x = -14; x <= 14; x += 0.00037F) {
    const kernels::Normal normal = kernels::fast_normal(x);
    const double z = static_cast<double>(x);
    const double cdf = std::erfc(-z / std::sqrt(2.0)) / 2;
    absolute = std::max(absolute, std::abs(static_cast<double>(normal.cdf) - cdf));
    if (x >= -5) {
      relative = std::max(relative, std::abs(static_cast<double>(normal.cdf) / cdf - 1));
    }
    const double exact_density = std::exp(-z * z / 2) / std::sqrt(2 * 3.14159265358979323846);
    density = std::max(density, std::abs(static_cast<double>(normal.density) - exact_density));
  }
  CHECK(absolute < 1.7e-7);
  CHECK(relative < 1e-6);
  CHECK(density < 1e-7);
  CHECK(std::isnan(kernels::fast_normal(std::numeric_limits<float>::quiet_NaN()).cdf));
}

TEST_CASE("gated_activation refuses an odd width") {
  Tape tape;
  Buffer x({2, 5}, DType::float32);
  Var odd = tape.variable(x.tensor());
  CHECK_THROWS_WITH_AS(gated_activation(odd, Activation::silu), doctest::Contains("found [2, 5]"), Error);
}
