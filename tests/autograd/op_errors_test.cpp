// A wrong operand is refused with the op, the shapes, the scope and the place of the call.

#include "tests/autograd/op_test.h"

using namespace minillm;
using namespace minillm::test;

namespace {

struct Wrong {
  const char* op;
  std::function<void(Tape&)> call;
  std::vector<std::string> parts;
};

template <class... Extents>
Var input(Tape& tape, Extents... extents) {
  return tape.variable(tape.allocate({extents...}, DType::float32));
}

template <class... Extents>
Var double_input(Tape& tape, Extents... extents) {
  return tape.variable(tape.allocate({extents...}, DType::float64));
}

const std::vector<int32_t> outside = {0, 3};
const Axes first_twice = {0, 0};

void concat_of_unequal(Tape& t) {
  const Var parts[] = {input(t, 2, 3), input(t, 3, 3)};
  concat(parts, 1);
}

const Wrong wrong_calls[] = {
    {"add", [](Tape& t) { add(input(t, 2, 3), input(t, 4)); }, {"[2, 3]", "[4]"}},
    {"mul", [](Tape& t) { mul(input(t, 2, 3), input(t, 2)); }, {"[2, 3]", "[2]"}},
    {"sub", [](Tape& t) { sub(input(t, 2), double_input(t, 2)); }, {"float32", "float64"}},
    {"matmul", [](Tape& t) { matmul(input(t, 2, 3), input(t, 4, 5)); }, {"[2, 3]", "[4, 5]"}},
    {"matmul", [](Tape& t) { matmul(input(t, 2, 3), input(t, 3, 5), true); }, {"[2, 3]", "[3, 5]"}},
    {"matmul", [](Tape& t) { matmul(input(t, 2, 3, 4), input(t, 3, 4, 5)); }, {"[2, 3, 4]", "[3, 4, 5]"}},
    {"linear", [](Tape& t) { linear(input(t, 2, 3), input(t, 5, 4)); }, {"[2, 3]", "[5, 4]"}},
    {"linear", [](Tape& t) { linear(input(t, 2, 3), input(t, 5, 3), input(t, 3)); }, {"[5, 3]", "[3]"}},
    {"linear", [](Tape& t) { linear(input(t, 3), double_input(t, 5, 3)); }, {"float32", "float64"}},
    {"rmsnorm", [](Tape& t) { rmsnorm(input(t, 2, 3), input(t, 2), 1e-6); }, {"[2, 3]", "[2]"}},
    {"reshape", [](Tape& t) { reshape(input(t, 2, 3), {4}); }, {"[2, 3]", "[4]"}},
    {"sum", [](Tape& t) { sum(input(t, 2, 3), {2}); }, {"axis 2", "[2, 3]"}},
    {"max", [](Tape& t) { max(input(t, 2, 3), -3); }, {"axis -3", "[2, 3]"}},
    {"mean", [](Tape& t) { mean(input(t, 0, 3), {0}); }, {"[0, 3]"}},
    {"softmax", [](Tape& t) { softmax(input(t)); }, {"[]"}},
    {"transpose", [](Tape& t) { transpose(input(t, 2, 3), first_twice); }, {"[2, 3]", "twice"}},
    {"transpose", [](Tape& t) { transpose(input(t, 2, 3), {0}); }, {"[2, 3]"}},
    {"slice", [](Tape& t) { slice(input(t, 2, 3), 1, 2, 4); }, {"[2, 4)", "[2, 3]"}},
    {"slice", [](Tape& t) { slice(input(t, 2, 3), 1, 2, 1); }, {"[2, 1)", "[2, 3]"}},
    {"concat", concat_of_unequal, {"[2, 3]", "[3, 3]"}},
    {"gather", [](Tape& t) { gather(input(t, 2, 3), outside); }, {"index 3", "row 1", "[2, 3]"}},
    {"gather", [](Tape& t) { gather(input(t, 5, 3), outside); }, {"2 indices", "[5, 3]"}},
};

}  // namespace

TEST_CASE("wrong operands are named with op, shapes, scope, file and line") {
  for (const Wrong& wrong : wrong_calls) {
    CAPTURE(wrong.op);
    Tape tape;
    auto scope = tape.enter("model.layers.3.mlp");
    const std::string message = message_of([&] { wrong.call(tape); });
    CAPTURE(message);
    CHECK(contains(message, "[" + std::string(wrong.op) + "] in model.layers.3.mlp ("));
    CHECK(contains(message, "op_errors_test.cpp:"));
    for (const std::string& part : wrong.parts) {
      CAPTURE(part);
      CHECK(contains(message, part));
    }
  }
}

TEST_CASE("the line in the message is that of the call") {
  Tape tape;
  Var a = input(tape, 2);
  Var b = input(tape, 3);
  const int line = __LINE__ + 1;
  const std::string message = message_of([&] { add(a, b); });
  CHECK(contains(message, "op_errors_test.cpp:" + std::to_string(line) + ")"));
}

TEST_CASE("a failed op leaves the tape usable") {
  Tape tape;
  const Buffer x = of({2}, {1, 2});
  Var v = tape.variable(x.tensor());
  Var other = double_input(tape, 3);
  CHECK_THROWS_AS(add(v, other), Error);
  tape.backward(sum_all(exp(v)));
  CHECK(v.grad().at(0) == doctest::Approx(std::exp(1.0)));
}

TEST_CASE("a wrong operand is wrong input: exit status 2") {
  Tape tape;
  try {
    add(input(tape, 2), input(tape, 3));
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::input);
  }
}
