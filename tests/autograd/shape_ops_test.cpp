#include "tests/autograd/op_test.h"

using namespace minillm;
using namespace minillm::test;

TEST_CASE("transpose puts axis order[i] at place i") {
  Tape tape;
  const Buffer matrix = of({2, 3}, {1, 2, 3, 4, 5, 6});
  Var x = tape.variable(matrix.tensor());
  Var y = transpose(x, {1, 0});
  CHECK(y.shape() == Shape{3, 2});
  check_close(values_of(y.value()), {1, 4, 2, 5, 3, 6}, 0);
  const Buffer cube = uniform_values({2, 3, 4}, -1, 1, 1);
  Var c = tape.variable(cube.tensor());
  Var turned = transpose(c, {2, 0, -2});
  CHECK(turned.shape() == Shape{4, 2, 3});
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      for (int64_t k = 0; k < 4; ++k) {
        CHECK(turned.value().at((k * 2 + i) * 3 + j) == cube.tensor().at((i * 3 + j) * 4 + k));
      }
    }
  }
}

TEST_CASE("transpose passes gradcheck for every order, and there and back is the identity") {
  for (const Axes& order : {Axes{0, 1, 2}, Axes{0, 2, 1}, Axes{1, 0, 2}, Axes{1, 2, 0}, Axes{2, 0, 1}, Axes{2, 1, 0}}) {
    check_gradients([&order](Tape&, const std::vector<Var>& x) { return transpose(x[0], order); },
                    list(uniform_values({2, 3, 4}, -1, 1, 1)));
  }
  Tape tape;
  const Buffer big = uniform_values({7, 130, 60}, -1, 1, 1, DType::float32);
  Var x = tape.variable(big.tensor());
  Var back = transpose(transpose(x, {1, 2, 0}), {2, 0, 1});
  check_close(values_of(back.value()), values_of(big.tensor()), 0);
}

TEST_CASE("slice cuts [begin, end) along any axis") {
  Tape tape;
  const Buffer buffer = of({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  Var x = tape.variable(buffer.tensor());
  check_close(values_of(slice(x, 1, 1, 3).value()), {1, 2, 5, 6}, 0);
  check_close(values_of(slice(x, 0, 1, 2).value()), {4, 5, 6, 7}, 0);
  CHECK(slice(x, -1, 2, 2).shape() == Shape{2, 0});
  for (int axis : {0, 1, 2}) {
    check_gradients([axis](Tape&, const std::vector<Var>& v) { return slice(v[0], axis, 1, 3); },
                    list(uniform_values({3, 4, 5}, -1, 1, 1)));
  }
}

TEST_CASE("overlapping slices add their gradients") {
  Tape tape;
  const Buffer buffer = of({3}, {1, 2, 3});
  Var x = tape.variable(buffer.tensor());
  tape.backward(add(sum_all(slice(x, 0, 0, 2)), sum_all(slice(x, 0, 1, 3))));
  check_close(values_of(x.grad()), {1, 2, 1}, 0);
}

TEST_CASE("concat joins along any axis; a part may come twice") {
  Tape tape;
  const Buffer a = of({2, 1}, {1, 2});
  const Buffer b = of({2, 2}, {3, 4, 5, 6});
  const Var parts[] = {tape.variable(a.tensor()), tape.variable(b.tensor()), tape.variable(a.tensor())};
  Var y = concat(parts, 1);
  CHECK(y.shape() == Shape{2, 4});
  check_close(values_of(y.value()), {1, 3, 4, 1, 2, 5, 6, 2}, 0);
  for (int axis : {0, 1, 2, -1}) {
    const Op op = [axis](Tape&, const std::vector<Var>& v) {
      const Var twice[] = {v[0], v[1], v[0]};
      return concat(twice, axis);
    };
    check_gradients(op, list(uniform_values({2, 3, 4}, -1, 1, 1), uniform_values({2, 3, 4}, -1, 1, 2)));
  }
}

TEST_CASE("expand repeats an axis of extent 1") {
  Tape tape;
  const Buffer buffer = of({2, 1, 2}, {1, 2, 3, 4});
  Var x = tape.variable(buffer.tensor());
  Var y = expand(x, 1, 3);
  CHECK(y.shape() == Shape{2, 3, 2});
  check_close(values_of(y.value()), {1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4}, 0);
  CHECK(expand(x, -2, 1).shape() == Shape{2, 1, 2});
  CHECK_THROWS_WITH_AS(expand(x, 2, 3), doctest::Contains("axis 2 must have extent 1; found x [2, 1, 2]"), Error);
  for (int axis : {0, 2, -1}) {
    check_gradients([axis](Tape&, const std::vector<Var>& v) { return expand(v[0], axis, 4); },
                    list(uniform_values({1, 3, 1}, -1, 1, 1)));
  }
}

TEST_CASE("reshape keeps values and passes gradients through") {
  check_gradients([](Tape&, const std::vector<Var>& v) { return add(reshape(v[0], {6}), reshape(v[0], {6})); },
                  list(uniform_values({2, 3}, -1, 1, 1)));
}

TEST_CASE("gather takes one column a row") {
  Tape tape;
  const Buffer buffer = of({3, 2}, {1, 2, 3, 4, 5, 6});
  const std::vector<int32_t> index = {1, 0, 1};
  Var x = tape.variable(buffer.tensor());
  check_close(values_of(gather(x, index).value()), {2, 3, 6}, 0);
  check_gradients([&index](Tape&, const std::vector<Var>& v) { return gather(v[0], index); },
                  list(uniform_values({3, 4}, -1, 1, 1)));
}

TEST_CASE("matmul: batched, transposed, with a shared right side") {
  Tape tape;
  const Buffer a = of({2, 3}, {1, 2, 3, 4, 5, 6});
  const Buffer b = of({3, 2}, {7, 8, 9, 10, 11, 12});
  Var va = tape.variable(a.tensor());
  Var vb = tape.variable(b.tensor());
  check_close(values_of(matmul(va, vb).value()), {58, 64, 139, 154}, 0);
  check_close(values_of(matmul(va, va, true).value()), {14, 32, 32, 77}, 0);

  struct Case {
    Shape a;
    Shape b;
    bool transpose_b;
    Shape result;
  };
  for (const Case& c : {Case{{3, 4}, {4, 5}, false, {3, 5}}, Case{{3, 4}, {5, 4}, true, {3, 5}},
                        Case{{2, 3, 4}, {2, 4, 5}, false, {2, 3, 5}}, Case{{2, 3, 4}, {2, 5, 4}, true, {2, 3, 5}},
                        Case{{2, 2, 3, 4}, {2, 2, 5, 4}, true, {2, 2, 3, 5}}, Case{{2, 3, 4}, {4, 5}, false, {2, 3, 5}},
                        Case{{2, 2, 3, 4}, {5, 4}, true, {2, 2, 3, 5}}, Case{{1, 4}, {4, 1}, false, {1, 1}}}) {
    CAPTURE(to_string(c.a));
    CAPTURE(to_string(c.b));
    const Op op = [&c](Tape&, const std::vector<Var>& v) { return matmul(v[0], v[1], c.transpose_b); };
    const std::vector<Buffer> inputs = list(uniform_values(c.a, -1, 1, 1), uniform_values(c.b, -1, 1, 2));
    Var y = op(tape, {tape.variable(inputs[0].tensor()), tape.variable(inputs[1].tensor())});
    CHECK(y.shape() == c.result);
    check_gradients(op, list(uniform_values(c.a, -1, 1, 1), uniform_values(c.b, -1, 1, 2)));
    const Outcome exact = run(op, inputs, DType::float64);
    check_close(run(op, inputs, DType::float32), exact, 2e-6);
    check_close(run(op, inputs, DType::float32, reference_kernels), exact, 2e-6);
  }
}

TEST_CASE("matmul of a value with itself adds both gradients") {
  for (bool transpose_b : {false, true}) {
    check_gradients([transpose_b](Tape&, const std::vector<Var>& v) { return matmul(v[0], v[0], transpose_b); },
                    list(uniform_values({2, 3, 3}, -1, 1, 1)));
  }
}

TEST_CASE("a batched product equals the products one by one") {
  const Buffer a = uniform_values({3, 40, 20}, -1, 1, 1, DType::float32);
  const Buffer b = uniform_values({3, 30, 20}, -1, 1, 2, DType::float32);
  Tape tape;
  Var batched = matmul(tape.constant(a.tensor()), tape.constant(b.tensor()), true);
  for (int64_t i = 0; i < 3; ++i) {
    Var one = matmul(tape.constant(a.tensor().rows(i, 1).reshape({40, 20})),
                     tape.constant(b.tensor().rows(i, 1).reshape({30, 20})), true);
    check_close(values_of(batched.value().rows(i, 1)), values_of(one.value()), 0);
  }
}
