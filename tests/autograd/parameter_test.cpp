#include "tests/autograd/op_test.h"

#include <cstdint>

using namespace minillm;
using namespace minillm::test;

namespace {

/// Two matrices around a vector, a merged matrix and a merged vector.
void declare_all(ParameterStore& store) {
  store.declare("a.weight", {3, 5}, Init::normal(0.02));
  store.declare("a.bias", {7}, Init::constant(0.5));
  store.declare_merged(
      "qkv.weight",
      {{"q.weight", 4, Init::normal(1)}, {"k.weight", 2, Init::normal(2)}, {"v.weight", 2, Init::constant(3)}}, 3);
  store.declare_merged("qkv.bias", {{"q.bias", 4, Init::constant(1)}, {"k.bias", 2, Init::constant(2)}}, 0);
}

}  // namespace

TEST_CASE("matrices come first, then vectors, each at a multiple of 64 bytes, padding zero") {
  for (DType dtype : {DType::float32, DType::float64}) {
    ParameterStore store;
    declare_all(store);
    store.allocate(dtype);
    store.initialize(1);
    const auto& parameters = store.parameters();
    CHECK(parameters[0].offset == 0);
    CHECK(parameters[2].offset == 16);  // 15 elements, padded
    CHECK(parameters[1].offset == 16 + 32);
    CHECK(parameters[3].offset == 16 + 32 + 16);
    CHECK(store.weights().numel() == 16 + 32 + 16 + 16);
    CHECK(store.gradients().numel() == store.weights().numel());
    CHECK(store.count() == 15 + 7 + 24 + 6);
    for (const Parameter& parameter : parameters) {
      CHECK(reinterpret_cast<uintptr_t>(parameter.value.data) % 64 == 0);
      CHECK(reinterpret_cast<uintptr_t>(parameter.grad.data) % 64 == 0);
    }
    CHECK(store.weights().at(15) == 0);
    CHECK(store.weights().at(16 + 24) == 0);
    CHECK(store.weights().at(16 + 32 + 6) == 0.5);
    CHECK(store.weights().at(16 + 32 + 7) == 0);
  }
}

TEST_CASE("matrices decay, vectors do not, unless told") {
  ParameterStore store;
  declare_all(store);
  store.declare_decayed("gain", {3}, Init::constant(1), true);
  CHECK(store.parameters()[0].decay);
  CHECK_FALSE(store.parameters()[1].decay);
  CHECK(store.parameters()[2].decay);
  CHECK_FALSE(store.parameters()[3].decay);
  CHECK(store.parameters()[4].decay);
}

TEST_CASE("merged rows go by their own names, in order, and are slices of one matrix") {
  ParameterStore store;
  declare_all(store);
  store.allocate(DType::float64);
  store.initialize(1);
  const std::vector<std::string_view> names = store.names();
  const std::vector<std::string_view> want = {"a.weight", "a.bias", "q.weight", "k.weight",
                                              "v.weight", "q.bias", "k.bias"};
  CHECK(names == want);
  const std::vector<NamedTensor> tensors = store.named_tensors();
  REQUIRE(tensors.size() == 7);
  CHECK(tensors[3].name == "k.weight");
  CHECK(tensors[3].value.shape == Shape{2, 3});
  CHECK(tensors[3].value.data == store.parameters()[2].value.rows(4, 2).data);
  CHECK(tensors[3].grad.data == store.parameters()[2].grad.rows(4, 2).data);
  CHECK(tensors[4].value.at(0) == 3);
  CHECK(tensors[6].value.shape == Shape{2});
  CHECK(tensors[6].value.at(0) == 2);
}

TEST_CASE("before allocate shapes are known and no memory is held") {
  ParameterStore store;
  declare_all(store);
  CHECK_FALSE(store.allocated());
  const std::vector<NamedTensor> tensors = store.named_tensors();
  CHECK(tensors[2].value.shape == Shape{4, 3});
  CHECK(tensors[2].value.data == nullptr);
  Tape tape;
  CHECK(contains(message_of([&] { tape.parameter(store.parameters()[0]); }), "a.weight"));
}

TEST_CASE("initial values depend on seed and name alone") {
  ParameterStore store;
  declare_all(store);
  store.allocate(DType::float64);
  store.initialize(42);

  ParameterStore other;  // another order, other neighbours
  other.declare("new.weight", {9, 9}, Init::normal(1));
  other.declare("k.weight", {2, 3}, Init::normal(2));
  other.declare("a.weight", {3, 5}, Init::normal(0.02));
  other.allocate(DType::float64);
  other.initialize(42);
  check_close(values_of(other.parameters()[2].value), values_of(store.parameters()[0].value), 0);
  check_close(values_of(other.parameters()[1].value), values_of(store.named_tensors()[3].value), 0);

  RandomStream stream(random_key(42, "init", "k.weight"));
  CHECK(other.parameters()[1].value.at(0) == 2 * stream.normal());
  CHECK(other.parameters()[1].value.at(1) == 2 * stream.normal());

  ParameterStore large;  // filled in several chunks: still the one stream
  large.declare("large.weight", {300, 111}, Init::normal(1));
  large.allocate(DType::float64);
  large.initialize(42);
  RandomStream whole(random_key(42, "init", "large.weight"));
  for (int64_t i = 0; i < large.parameters()[0].value.numel(); ++i) {
    REQUIRE(large.parameters()[0].value.at(i) == whole.normal());
  }

  other.initialize(43);
  CHECK(other.parameters()[2].value.at(0) != store.parameters()[0].value.at(0));
}

TEST_CASE("float32 weights are the rounded float64 ones") {
  ParameterStore doubles;
  ParameterStore floats;
  declare_all(doubles);
  declare_all(floats);
  doubles.allocate(DType::float64);
  floats.allocate(DType::float32);
  doubles.initialize(5);
  floats.initialize(5);
  for (int64_t i = 0; i < doubles.weights().numel(); ++i) {
    CHECK(floats.weights().as<float>()[i] == static_cast<float>(doubles.weights().at(i)));
  }
}

TEST_CASE("a name is declared once, and nothing after allocate") {
  ParameterStore store;
  declare_all(store);
  CHECK(contains(message_of([&] { store.declare("a.bias", {1}, Init::constant(0)); }), "a.bias was declared twice"));
  CHECK(contains(message_of([&] { store.declare("k.weight", {1}, Init::constant(0)); }), "k.weight"));
  store.allocate(DType::float32);
  CHECK(contains(message_of([&] { store.declare("late", {1}, Init::constant(0)); }), "late"));
  CHECK_THROWS_AS(store.allocate(DType::float32), Error);
}

TEST_CASE("zero_gradients forgets, the first addition overwrites, finish_gradients zeroes what nothing wrote") {
  ParameterStore store;
  Parameter& used = store.declare("used", {2}, Init::constant(1));
  Parameter& unused = store.declare("unused", {2}, Init::constant(1));
  store.allocate(DType::float64);
  store.initialize(1);
  for (int64_t i = 0; i < store.gradients().numel(); ++i) {
    set(store.gradients(), i, 77);
  }
  store.zero_gradients();
  Tape tape;
  tape.backward(sum_all(scale(tape.parameter(used), 3)));
  tape.clear();
  tape.backward(sum_all(scale(tape.parameter(used), 1)));  // micro-batches add
  store.finish_gradients();
  check_close(values_of(used.grad), {4, 4}, 0);
  check_close(values_of(unused.grad), {0, 0}, 0);
}

TEST_CASE("a row of a parameter is read in place, and its gradient leaves the other rows 0") {
  ParameterStore store;
  Parameter& stack = store.declare("stack", {3, 2, 2}, Init::normal(1));
  store.allocate(DType::float64);
  store.initialize(1);
  for (int64_t i = 0; i < store.gradients().numel(); ++i) {
    set(store.gradients(), i, 77);
  }
  store.zero_gradients();
  Tape tape;
  Var last = tape.parameter_row(stack, 2);
  CHECK(last.shape() == Shape{2, 2});
  CHECK(last.value().data == stack.value.rows(2, 1).data);
  tape.backward(sum_all(add(scale(tape.parameter_row(stack, 1), 3), scale(last, 5))));
  tape.clear();
  tape.backward(sum_all(tape.parameter_row(stack, 1)));  // micro-batches add
  store.finish_gradients();
  check_close(values_of(stack.grad), {0, 0, 0, 0, 4, 4, 4, 4, 5, 5, 5, 5}, 0);
  CHECK(contains(message_of([&] { tape.parameter_row(stack, 3); }), "outside a tensor"));
}

TEST_CASE("a store without gradients leaves parameters constant") {
  ParameterStore store;
  Parameter& weight = store.declare("w", {2}, Init::constant(1));
  store.allocate(DType::float32, false);
  Tape tape;
  CHECK_FALSE(tape.parameter(weight).node().needs_grad);
  CHECK_FALSE(tape.parameter_row(weight, 1).node().needs_grad);
}

TEST_CASE("gradients may be taken later, beside weights that stay") {
  ParameterStore store;
  declare_all(store);
  CHECK(contains(message_of([&] { store.allocate_gradients(); }), "allocate first"));
  store.allocate(DType::float64, false);
  store.initialize(1);
  const std::vector<double> weights = numbers_of(store.weights());
  store.allocate_gradients();
  CHECK(numbers_of(store.weights()) == weights);
  Parameter& bias = store.parameters()[1];
  Tape tape;
  tape.backward(sum_all(tape.parameter(bias)));
  store.allocate_gradients();  // they are there
  check_close(values_of(bias.grad), std::vector<double>(7, 1.0), 0);
  CHECK(store.gradients().at(bias.offset) == 1);
  CHECK(store.gradients().at(bias.offset - 1) == 0);
}

TEST_CASE("views lay another flat buffer out under the same names") {
  ParameterStore store;
  declare_all(store);
  store.allocate(DType::float32);
  Buffer moments({store.weights().numel()}, DType::float32);
  const std::vector<Tensor> views = store.views(moments.tensor());
  REQUIRE(views.size() == 7);
  CHECK(views[3].shape == Shape{2, 3});
  CHECK(static_cast<float*>(views[3].data) - moments.tensor().as<float>() == 16 + 12);
}
