#include "autograd/ops.h"
#include "tests/autograd/op_test.h"

#include <doctest/doctest.h>

using namespace minillm;
using namespace minillm::test;

namespace {

constexpr double eps = 1e-5;

Var normalize(Tape&, const std::vector<Var>& inputs) {
  return batchnorm(inputs[0], inputs[1], inputs[2], eps).y;
}

std::vector<Buffer> inputs_of(const Shape& shape) {
  std::vector<Buffer> inputs;
  inputs.push_back(normal_values(shape, 1, 3));
  inputs.push_back(normal_values({shape[-1]}, 2));
  inputs.push_back(normal_values({shape[-1]}, 3));
  return inputs;
}

}  // namespace

TEST_CASE("batchnorm: fused, composed, reference and fast agree") {
  for (const Shape& shape : {Shape{3, 50, 37}, Shape{130, 64}, Shape{9, 5}}) {
    const std::vector<Buffer> inputs = inputs_of(shape);
    CHECK(fused_against_composed(normalize, inputs) < 1e-12);
    CHECK(float_against_double(normalize, inputs) < 3e-6);
    CHECK(float_against_double(normalize, inputs, reference_kernels) < 3e-6);
  }
}

TEST_CASE("batchnorm keeps its precision on channels far from zero") {
  std::vector<Buffer> inputs = inputs_of({256, 4});
  for (int i = 0; i < 4 * 256; ++i) {
    double& x = inputs[0].tensor().as<double>()[i];
    x = static_cast<double>(static_cast<float>(x + 1000));
  }
  // E[x^2] - E[x]^2 would lose the variance: 1e6 has a step of 0.06 in float.
  CHECK(difference(run(normalize, inputs, DType::float32), run(normalize, inputs, DType::float64)) < 1e-4);
}

TEST_CASE("batchnorm: gradients against differences") {
  const std::vector<Buffer> inputs = inputs_of({6, 7});
  check_gradients(normalize, inputs);
  check_gradients(normalize, inputs, composed_ops);
}

TEST_CASE("batchnorm: the same bits for 1, 2, 3 and 4 threads") {
  CHECK(same_bits_for_all_threads(normalize, inputs_of({300, 40})));
}

TEST_CASE("batchnorm gives the gradients that are wanted when others are not") {
  const std::vector<Buffer> inputs = inputs_of({100, 20});
  const Outcome all = run(normalize, inputs, DType::float64);
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
      tape.backward(project({normalize(tape, vars)}));
      CHECK(difference(values_of(vars[wanted].grad()), all.gradients[wanted]) < 3e-6);
    }
  }
}

TEST_CASE("batchnorm refuses a gain or bias of another width") {
  Tape tape;
  Buffer x({2, 4}, DType::float32);
  Buffer four({4}, DType::float32);
  Buffer three({3}, DType::float32);
  Var row = tape.variable(four.tensor());
  Var narrow = tape.variable(three.tensor());
  Var input = tape.variable(x.tensor());
  CHECK_THROWS_WITH_AS(batchnorm(input, narrow, row, eps), doctest::Contains("found x [2, 4], gain [3], bias [4]"),
                       Error);
  CHECK_THROWS_WITH_AS(batchnorm(input, row, narrow, eps), doctest::Contains("[batchnorm]"), Error);
}
