// layernorm and batchnorm: a gain and a bias behind a normalisation, over each row and over each channel.

#include "autograd/ops.h"
#include "tests/autograd/op_test.h"

#include <doctest/doctest.h>

using namespace minillm;
using namespace minillm::test;

namespace {

constexpr double eps = 1e-5;

Var layer(Tape&, const std::vector<Var>& inputs) {
  return layernorm(inputs[0], inputs[1], inputs[2], eps);
}

Var batch(Tape&, const std::vector<Var>& inputs) {
  return batchnorm(inputs[0], inputs[1], inputs[2], eps).y;
}

struct AffineNorm {
  const char* name;
  Var (*normalize)(Tape&, const std::vector<Var>& inputs);
  Shape smallest;  ///< that still has a spread to divide by
  Shape far;       ///< of rows or channels of 256 values, or 4
};

const AffineNorm norms[] = {{"layernorm", layer, {5}, {4, 256}}, {"batchnorm", batch, {9, 5}, {256, 4}}};

std::vector<Buffer> inputs_of(const Shape& shape) {
  std::vector<Buffer> inputs;
  inputs.push_back(normal_values(shape, 1, 3));
  inputs.push_back(normal_values({shape[-1]}, 2));
  inputs.push_back(normal_values({shape[-1]}, 3));
  return inputs;
}

}  // namespace

TEST_CASE("layernorm of (1, 2, 3, 4)") {
  std::vector<Buffer> inputs = inputs_of({1, 4});
  for (int i = 0; i < 4; ++i) {
    inputs[0].tensor().as<double>()[i] = i + 1;
    inputs[1].tensor().as<double>()[i] = 1;
    inputs[2].tensor().as<double>()[i] = 0;
  }
  const std::vector<double> expected = {-1.3416, -0.4472, 0.4472, 1.3416};
  for (const DType dtype : {DType::float32, DType::float64}) {
    const std::vector<double> y = run(layer, inputs, dtype).value;
    for (size_t i = 0; i < 4; ++i) {
      CHECK(y[i] == doctest::Approx(expected[i]).epsilon(4e-5));
    }
  }
}

TEST_CASE("affine norms: fused, composed, reference and fast agree") {
  for (const AffineNorm& norm : norms) {
    CAPTURE(norm.name);
    for (const Shape& shape : {Shape{3, 50, 37}, Shape{130, 64}, norm.smallest}) {
      const std::vector<Buffer> inputs = inputs_of(shape);
      CHECK(fused_against_composed(norm.normalize, inputs) < 1e-12);
      CHECK(float_against_double(norm.normalize, inputs) < 3e-6);
      CHECK(float_against_double(norm.normalize, inputs, reference_kernels) < 3e-6);
    }
  }
}

TEST_CASE("affine norms keep their precision on values far from zero") {
  for (const AffineNorm& norm : norms) {
    CAPTURE(norm.name);
    std::vector<Buffer> inputs = inputs_of(norm.far);
    for (int i = 0; i < 4 * 256; ++i) {
      double& x = inputs[0].tensor().as<double>()[i];
      x = static_cast<double>(static_cast<float>(x + 1000));
    }
    // E[x^2] - E[x]^2 would lose the variance: 1e6 has a step of 0.06 in float.
    CHECK(difference(run(norm.normalize, inputs, DType::float32), run(norm.normalize, inputs, DType::float64)) < 1e-4);
  }
}

TEST_CASE("affine norms: gradients against differences") {
  for (const AffineNorm& norm : norms) {
    CAPTURE(norm.name);
    const std::vector<Buffer> inputs = inputs_of({6, 7});
    check_gradients(norm.normalize, inputs);
    check_gradients(norm.normalize, inputs, composed_ops);
  }
}

TEST_CASE("affine norms: the same bits for 1, 2, 3 and 4 threads") {
  for (const AffineNorm& norm : norms) {
    CAPTURE(norm.name);
    CHECK(same_bits_for_all_threads(norm.normalize, inputs_of({300, 40})));
  }
}

TEST_CASE("affine norms give the gradients that are wanted when others are not") {
  for (const AffineNorm& norm : norms) {
    CAPTURE(norm.name);
    const std::vector<Buffer> inputs = inputs_of({100, 20});
    const Outcome all = run(norm.normalize, inputs, DType::float64);
    for (const DType dtype : {DType::float32, DType::float64}) {
      for (size_t wanted = 0; wanted < 3; ++wanted) {
        Tape tape;
        std::vector<Buffer> converted;
        std::vector<Var> vars;
        for (size_t k = 0; k < 3; ++k) {
          converted.emplace_back(inputs[k].tensor().shape, dtype);
          copy_values(inputs[k].tensor(), converted[k].tensor());
          vars.push_back(k == wanted ? tape.variable(converted[k].tensor()) : tape.constant(converted[k].tensor()));
        }
        tape.backward(project({norm.normalize(tape, vars)}));
        CHECK(difference(values_of(vars[wanted].grad()), all.gradients[wanted]) < 3e-6);
      }
    }
  }
}

TEST_CASE("affine norms refuse a gain or bias of another width") {
  for (const AffineNorm& norm : norms) {
    CAPTURE(norm.name);
    Tape tape;
    Buffer x({2, 4}, DType::float32);
    Buffer four({4}, DType::float32);
    Buffer three({3}, DType::float32);
    Var row = tape.variable(four.tensor());
    Var narrow = tape.variable(three.tensor());
    Var input = tape.variable(x.tensor());
    CHECK_THROWS_WITH_AS(norm.normalize(tape, {input, narrow, row}),
                         doctest::Contains("found x [2, 4], gain [3], bias [4]"), Error);
    const std::string name = "[" + std::string(norm.name) + "]";
    CHECK_THROWS_WITH_AS(norm.normalize(tape, {input, row, narrow}), doctest::Contains(name.c_str()), Error);
  }
}
