#include "tests/autograd/op_test.h"

#include <cstdio>

using namespace minillm;
using namespace minillm::test;

TEST_CASE("node ids follow the order of creation and are the same in every run") {
  Tape tape;
  const Buffer x = of({2}, {1, 2});
  for (int run = 0; run < 2; ++run) {
    Var a = tape.variable(x.tensor());
    Var b = exp(a);
    Var c = add(a, b);
    CHECK(a.id() == 0);
    CHECK(b.id() == 1);
    CHECK(c.id() == 2);
    CHECK(tape.size() == 3);
    CHECK(c.node().inputs[0] == 0);
    CHECK(c.node().inputs[1] == 1);
    tape.clear();
  }
}

TEST_CASE("a Var used after clear throws, also when its id exists again") {
  Tape tape;
  const Buffer x = of({2}, {1, 2});
  Var old = tape.variable(x.tensor());
  tape.clear();
  Var fresh = tape.variable(x.tensor());
  CHECK(fresh.id() == old.id());
  CHECK(contains(message_of([&] { old.value(); }), "cleared"));
  CHECK(contains(message_of([&] { add(fresh, old); }), "cleared"));
  CHECK(contains(message_of([&] { exp(Var()); }), "empty Var"));
}

TEST_CASE("operands of different tapes are refused") {
  Tape one;
  Tape two;
  const Buffer x = of({2}, {1, 2});
  Var a = one.variable(x.tensor());
  Var b = two.variable(x.tensor());
  CHECK(contains(message_of([&] { add(a, b); }), "different tapes"));
}

TEST_CASE("gradients of a value used several times add up") {
  Tape tape;
  const Buffer x = of({3}, {1, -2, 3});
  Var v = tape.variable(x.tensor());
  Var y = add(mul(v, v), add(v, v));  // x^2 + 2x
  tape.backward(sum_all(y));
  check_close(values_of(v.grad()), {4, -2, 8}, 1e-15);
}

TEST_CASE("a gradient seed scales, and a second loss on one tape adds") {
  Tape tape;
  const Buffer x = of({2}, {1, 2});
  Var v = tape.variable(x.tensor());
  Var square = mul(v, v);
  tape.backward(sum_all(square), 0.5);
  check_close(values_of(v.grad()), {1, 2}, 1e-15);
  tape.backward(sum_all(scale(square, 10)));
  check_close(values_of(v.grad()), {21, 42}, 1e-15);
}

TEST_CASE("retain keeps intermediate values and gradients, otherwise they are given back") {
  const Buffer x = of({2}, {1, 2});
  for (bool retain : {false, true}) {
    Tape tape({.retain = retain});
    Var v = tape.variable(x.tensor());
    Var square = mul(v, v);
    Var shifted = add(square, square);
    Var loss = sum_all(add(shifted, square));
    tape.backward(loss);
    check_close(values_of(v.grad()), {6, 12}, 1e-15);
    tape.release_unsaved(0, loss);
    if (retain) {
      check_close(values_of(shifted.value()), {2, 8}, 1e-15);
      check_close(values_of(square.grad()), {3, 3}, 1e-15);
      tape.backward(loss);  // what the first pass left must not flow again
      check_close(values_of(square.grad()), {3, 3}, 1e-15);
      check_close(values_of(v.grad()), {12, 24}, 1e-15);
    } else {
      CHECK(contains(message_of([&] { shifted.value(); }), "retain"));
      CHECK(contains(message_of([&] { square.grad(); }), "retain"));
    }
  }
}

TEST_CASE("a tape that does not record computes the same values, saves nothing and has no gradients") {
  const Buffer x = uniform_values({64, 50}, -1, 1, 1);
  const std::vector<int32_t> index(64, 7);
  const auto forward = [&](Tape& tape) {
    Var v = tape.variable(x.tensor());
    return sum_all(add(gather(v, index), reshape(max(v, 1), {64})));
  };
  Tape recording;
  Tape silent({.record = false});
  Var loss = forward(recording);
  Var same = forward(silent);
  CHECK(loss.item() == same.item());
  CHECK_FALSE(same.node().needs_grad);
  CHECK(silent.bytes_in_use() + 2 * 64 * 4 <= recording.bytes_in_use());  // the two saved index arrays
  CHECK(contains(message_of([&] { silent.backward(same); }), "does not record"));
}

TEST_CASE("constants get no gradient, and a variable that nothing reaches says so") {
  Tape tape;
  const Buffer x = of({2}, {1, 2});
  Var c = tape.constant(x.tensor());
  Var v = tape.variable(x.tensor());
  Var unused = tape.variable(x.tensor());
  tape.backward(sum_all(mul(c, v)));
  CHECK(contains(message_of([&] { c.grad(); }), "nothing it was computed from needs one"));
  CHECK(contains(message_of([&] { unused.grad(); }), "backward has not reached it"));
}

TEST_CASE("backward starts at one element") {
  Tape tape;
  const Buffer x = of({2}, {1, 2});
  Var v = tape.variable(x.tensor());
  CHECK(contains(message_of([&] { tape.backward(exp(v)); }), "[2]"));
}

TEST_CASE("a parameter used twice gets both contributions (tied weights)") {
  ParameterStore store;
  Parameter& weight = store.declare("w", {2, 2}, Init::constant(3));
  store.allocate(DType::float64);
  store.initialize(1);
  Tape tape;
  const Buffer x = of({1, 2}, {1, 2});
  for (int step = 0; step < 2; ++step) {
    store.zero_gradients();
    Var first = linear(tape.constant(x.tensor()), tape.parameter(weight));
    Var second = matmul(first, tape.parameter(weight));
    tape.backward(sum_all(second));
    store.finish_gradients();
    // first = x W^T = (9, 9). The sum of first W: through the second use each row gets first_i = 9, through the first
    // use row i gets x * (sum of W's row i) = (6, 12).
    check_close(values_of(weight.grad), {15, 21, 15, 21}, 1e-15);
    tape.clear();
  }
}

TEST_CASE("a step in the steady state takes no new memory") {
  ParameterStore store;
  Parameter& weight = store.declare("w", {64, 64}, Init::normal(0.02));
  Parameter& gain = store.declare("g", {64}, Init::constant(1));
  store.allocate(DType::float32);
  store.initialize(1);
  const Buffer x = uniform_values({2048, 64}, -1, 1, 1, DType::float32);
  Tape tape;
  std::vector<size_t> reserved;
  for (int step = 0; step < 5; ++step) {
    Var h = tape.constant(x.tensor());
    for (int layer = 0; layer < 6; ++layer) {
      h = add(h, linear(rmsnorm(h, tape.parameter(gain), 1e-6), tape.parameter(weight)));
    }
    tape.backward(sum_all(softmax(h)));
    reserved.push_back(tape.bytes_reserved());
    tape.clear();
  }
  CHECK(reserved[1] == reserved[2]);
  CHECK(reserved[4] == reserved[1]);
}

TEST_CASE("backward holds few intermediate gradients at a time") {
  const Buffer x = uniform_values({1024, 256}, -1, 1, 1, DType::float32);
  const size_t one = x.tensor().bytes();
  Tape tape;
  Var h = tape.variable(x.tensor());
  for (int i = 0; i < 40; ++i) {
    h = scale(h, 1.01);
  }
  Var loss = sum_all(h);
  const size_t values = tape.peak_bytes();
  tape.backward(loss);
  CHECK(tape.peak_bytes() <= values + 3 * one);  // 41 without recycling
}

TEST_CASE("values that no backward reads are released: the next ones take their memory") {
  const Buffer x = uniform_values({1024, 256}, -1, 1, 1, DType::float32);
  const size_t one = x.tensor().bytes();
  Tape tape;
  Var h = tape.variable(x.tensor());
  for (int layer = 0; layer < 20; ++layer) {
    const NodeId first = tape.size();
    h = sub(add(h, h), h);
    tape.release_unsaved(first, h);
  }
  CHECK(tape.peak_bytes() <= 22 * one);  // one a layer, its output; 40 without release
  tape.backward(sum_all(h));
}

TEST_CASE("a released value is computed again for backward, with the same bits, and given back after it") {
  const Buffer x = uniform_values({64, 32}, -1, 1, 1, DType::float32);
  const Buffer gain = uniform_values({32}, -1, 1, 2, DType::float32);
  const Buffer weight = uniform_values({8, 32}, -1, 1, 3, DType::float32);
  std::vector<std::vector<double>> gradients;
  for (const bool release : {false, true}) {
    Tape tape;
    Var input = tape.variable(x.tensor());
    Var w = tape.variable(weight.tensor());
    Var normed = rmsnorm(input, tape.variable(gain.tensor()), 1e-6);
    Var activated = activate(normed, Activation::silu);
    Var loss = sum_all(linear(activated, w));
    const size_t before = tape.bytes_in_use();
    if (release) {
      tape.release_unsaved(normed.id(), loss);
      CHECK(tape.bytes_in_use() + 2 * x.tensor().bytes() <= before);
      CHECK(contains(message_of([&] { normed.value(); }), "rmsnorm was released and read again"));
    }
    const size_t leaves = x.tensor().bytes() + gain.tensor().bytes() + weight.tensor().bytes();
    const size_t expected = tape.bytes_in_use() + leaves;  // their gradients stay, and nothing else
    tape.backward(loss);
    CHECK(tape.bytes_in_use() == expected);
    gradients.push_back(values_of(input.grad()));
    gradients.push_back(values_of(w.grad()));
    tape.backward(loss);  // computes them once more
    CHECK(tape.bytes_in_use() == expected);
    gradients.push_back(values_of(input.grad()));
    gradients.push_back(values_of(w.grad()));
  }
  for (size_t i = 0; i < 4; ++i) {
    CHECK(gradients[i] == gradients[4 + i]);
  }
  for (size_t i = 0; i < gradients[0].size(); ++i) {
    CHECK(gradients[2][i] == 2 * gradients[0][i]);
  }
}

TEST_CASE("an op that reads what it did not save is named") {
  Tape tape;
  const Buffer x = of({2}, {1, 2});
  Var v = tape.variable(x.tensor());
  Var doubled = add(v, v);
  Var loss = sum_all(doubled);
  tape.release_unsaved(0, loss);
  CHECK(contains(message_of([&] { tape.value(doubled.id()); }), "add was read in backward and not saved"));
}

TEST_CASE("an op that reads its own value without having saved it is named") {
  Tape tape;
  const Buffer x = of({2}, {1, 2});
  Var v = tape.variable(x.tensor());
  Var e = exp(v);
  Var loss = sum_all(e);
  e.node().saved = false;  // as if exp had forgotten
  tape.release_unsaved(0, loss);
  CHECK(contains(message_of([&] { tape.backward(loss); }), "exp was read in backward and not saved"));
}

TEST_CASE("without a record nothing is saved, so everything but the result can go") {
  Tape tape({.record = false});
  const Buffer x = uniform_values({64, 32}, -1, 1, 1, DType::float32);
  Var loss = sum_all(softmax(exp(tape.constant(x.tensor()))));
  const size_t before = tape.bytes_in_use();
  tape.release_unsaved(0, loss);
  CHECK(tape.bytes_in_use() == before - 2 * x.tensor().bytes());
}

TEST_CASE("the readable paths keep every value") {
  const Buffer x = of({2}, {1, 2});
  for (const TapeOptions options : {TapeOptions{.kernels = Kernels::reference}, TapeOptions{.ops = Ops::composed}}) {
    Tape tape(options);
    Var v = tape.variable(x.tensor());
    Var doubled = add(v, v);
    Var loss = sum_all(doubled);
    tape.release_unsaved(0, loss);
    check_close(values_of(doubled.value()), {2, 4}, 0);
  }
}

TEST_CASE("scopes nest, and dump prints a line a node") {
  Tape tape;
  const Buffer x = of({2}, {3, 4});
  {
    auto layer = tape.enter("model.layers.0");
    {
      auto part = tape.enter("model.layers.0.mlp");
      Var v = exp(tape.variable(x.tensor()));
      CHECK(std::string(v.node().scope) == "model.layers.0.mlp");
    }
    CHECK(std::string(tape.scope()) == "model.layers.0");
  }
  CHECK(std::string(tape.scope()).empty());
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  tape.dump(file);
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  CHECK(contains(text, "exp"));
  CHECK(contains(text, "model.layers.0.mlp"));
  CHECK(contains(text, "tape_test.cpp"));
  CHECK(contains(text, " 5 "));  // |value| of (3, 4)
}

TEST_CASE("reshape alone shares storage with its operand") {
  Tape tape;
  const Buffer x = of({2, 2}, {1, 2, 3, 4});
  Var v = tape.variable(x.tensor());
  CHECK(reshape(v, {4}).value().data == v.value().data);
  CHECK(slice(v, 0, 0, 2).value().data != v.value().data);
  CHECK(transpose(v, {0, 1}).value().data != v.value().data);
}

TEST_CASE("what leads to a node") {
  Tape tape;
  const Buffer x = of({2}, {1, 2});
  Var v = tape.variable(x.tensor());
  Var dead = exp(v);
  Var loss = sum_all(mul(v, v));
  const std::vector<bool> leads = tape.ancestors(loss.id());
  CHECK(leads == std::vector<bool>{true, false, true, true});
  CHECK(tape.ancestors(dead.id()) == std::vector<bool>{true, true, false, false});
}

TEST_CASE("a gradient that no backward has written is not there") {
  ParameterStore store;
  Parameter& used = store.declare("used", {2}, Init::constant(1));
  Parameter& idle = store.declare("idle", {2}, Init::constant(1));
  store.allocate(DType::float32);
  store.initialize(1);
  Tape tape;
  for (int pass = 0; pass < 2; ++pass) {
    tape.clear();
    store.zero_gradients();
    Var a = tape.parameter(used);
    Var b = tape.parameter(idle);
    CHECK(contains(message_of([&] { a.grad(); }), "no gradient: backward has not reached it"));
    tape.backward(sum_all(mul(a, a)));
    check_close(values_of(a.grad()), {2, 2}, 0);
    CHECK(contains(message_of([&] { b.grad(); }), "no gradient: backward has not reached it"));
    store.finish_gradients();
    check_close(values_of(b.grad()), {0, 0}, 0);
  }
}

#if !defined(NDEBUG) && !defined(MINILLM_SANITIZED)
TEST_CASE("a checking build fills with NaN what nobody may read") {
  Tape tape;
  const Buffer x = of({4}, {1, 2, 3, 4});
  Var v = exp(tape.variable(x.tensor()));
  const Tensor kept = v.value();
  CHECK(std::isfinite(kept.at(0)));
  tape.clear();
  CHECK(std::isnan(kept.at(0)));

  const Tensor scratch = tape.scratch({4}, DType::float32).tensor();
  CHECK(std::isnan(scratch.at(3)));

  ParameterStore store;
  Parameter& weight = store.declare("weight", {2}, Init::constant(1));
  store.allocate(DType::float64);
  CHECK(weight.grad.at(1) == 0);
  store.zero_gradients();
  CHECK(std::isnan(weight.grad.at(1)));
}
#endif
