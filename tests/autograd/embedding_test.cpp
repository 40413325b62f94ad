#include "autograd/ops.h"
#include "tests/autograd/op_test.h"

#include <doctest/doctest.h>

using namespace minillm;
using namespace minillm::test;

namespace {

/// R ids of [0, V), many of them repeated.
std::vector<int32_t> random_ids(int64_t R, int64_t V) {
  RandomStream stream(random_key(3, "ids"));
  std::vector<int32_t> ids(static_cast<size_t>(R));
  for (int32_t& id : ids) {
    id = static_cast<int32_t>(stream.below(static_cast<uint64_t>(V)));
  }
  return ids;
}

Op embed(std::vector<int32_t> ids) {
  return [ids](Tape&, const std::vector<Var>& inputs) { return embedding(inputs[0], ids); };
}

std::vector<Buffer> table_of(int64_t V, int64_t d) {
  std::vector<Buffer> inputs;
  inputs.push_back(normal_values({V, d}, 1));
  return inputs;
}

}  // namespace

TEST_CASE("embedding takes rows by id, and its gradient counts them") {
  Tape tape;
  Buffer table({3, 2}, DType::float64);
  for (int i = 0; i < 6; ++i) {
    table.tensor().as<double>()[i] = i;
  }
  Var weights = tape.variable(table.tensor());
  std::vector<int32_t> ids = {2, 0, 2};
  Var y = embedding(weights, ids);
  ids = {9, 9, 9};  // the op has its own copy
  CHECK(values_of(y.value()) == std::vector<double>{4, 5, 0, 1, 4, 5});
  tape.backward(sum_all(y));
  CHECK(values_of(weights.grad()) == std::vector<double>{1, 1, 0, 0, 2, 2});
}

TEST_CASE("embedding: fused, composed, reference and fast agree") {
  const std::vector<Buffer> inputs = table_of(11, 70);
  const Op op = embed(random_ids(150, 11));
  CHECK(fused_against_composed(op, inputs) < 1e-12);
  CHECK(float_against_double(op, inputs) < 1e-6);
  CHECK(float_against_double(op, inputs, reference_kernels) < 1e-6);
}

TEST_CASE("embedding: gradient against differences") {
  const std::vector<Buffer> inputs = table_of(5, 3);
  check_gradients(embed({0, 4, 4, 1}), inputs);
}

TEST_CASE("embedding: the same bits for 1, 2, 3 and 4 threads") {
  CHECK(same_bits_for_all_threads(embed(random_ids(500, 7)), table_of(7, 100)));
}

TEST_CASE("embedding names the position, the id and the vocabulary") {
  Tape tape;
  Buffer table({5, 2}, DType::float32);
  Var weights = tape.variable(table.tensor());
  const std::vector<int32_t> too_large = {0, 4, 5};
  const std::vector<int32_t> negative = {-1};
  CHECK_THROWS_WITH_AS(embedding(weights, too_large), doctest::Contains("id 5 at position 2 is outside [0, 5)"), Error);
  CHECK_THROWS_WITH_AS(embedding(weights, negative), doctest::Contains("id -1 at position 0 is outside [0, 5)"), Error);
}
