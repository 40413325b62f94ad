// The ops on packed queries, keys and values: each against its composition, differences and its float versions.

#include "core/kernels/rope.h"
#include "tests/autograd/op_test.h"
#include "tests/core/qkv_support.h"

#include <doctest/doctest.h>

using namespace minillm;
using namespace minillm::test;

namespace {

struct OpCase {
  std::string name;
  Op op;
  std::vector<Buffer> inputs;
};

Tensor rope_tensor(Tape& tape, const std::vector<double>& values, const Shape& shape, DType dtype) {
  const Tensor tensor = tape.allocate(shape, dtype);
  copy_values({const_cast<double*>(values.data()), shape, DType::float64}, tensor);
  return tensor;
}

Op rope_op(const QkvLayout& layout, double fraction) {
  return [=](Tape& tape, const std::vector<Var>& in) {
    const int64_t T = in[0].shape()[1];
    const int64_t pairs = kernels::rope_pairs(fraction, layout.head_dim);
    std::vector<double> cosines(static_cast<size_t>(T * pairs));
    std::vector<double> sines(cosines.size());
    kernels::rope_table(cosines.data(), sines.data(), T, pairs, layout.head_dim, 100.0);
    // Rounded, so that float and double runs turn by the same angles.
    return rope(in[0], layout, rope_tensor(tape, rounded(cosines), {T, pairs}, in[0].dtype()),
                rope_tensor(tape, rounded(sines), {T, pairs}, in[0].dtype()));
  };
}

std::vector<OpCase> op_cases(int64_t B, int64_t T) {
  std::vector<OpCase> cases;
  for (const QkvCase& test : qkv_cases()) {
    const QkvLayout layout = test.layout;
    const auto qkv = [=] { return normal_values({B, T, layout.width()}, 1); };
    cases.push_back({"causal_attention " + test.name,
                     [=](Tape&, const std::vector<Var>& in) { return causal_attention(in[0], layout); }, list(qkv())});
    cases.push_back({"bidirectional_attention " + test.name,
                     [=](Tape&, const std::vector<Var>& in) { return bidirectional_attention(in[0], layout); },
                     list(qkv())});
    cases.push_back({"rope " + test.name, rope_op(layout, 1.0), list(qkv())});
    cases.push_back({"partial rope " + test.name, rope_op(layout, 0.6), list(qkv())});
    for (double offset : {0.0, 1.0}) {
      cases.push_back(
          {"qk_norm " + test.name,
           [=](Tape&, const std::vector<Var>& in) { return qk_norm(in[0], in[1], in[2], layout, 1e-6, offset); },
           list(qkv(), normal_values({layout.head_dim}, 2), normal_values({layout.head_dim}, 3))});
    }
    if (layout.gated) {
      cases.push_back({"attention_gate",
                       [=](Tape&, const std::vector<Var>& in) { return attention_gate(in[0], in[1], layout); },
                       list(normal_values({B, T, layout.n_heads * layout.head_dim}, 4), qkv())});
    }
  }
  return cases;
}

}  // namespace

TEST_CASE("fused ops on qkv are their compositions, values and gradients, in double") {
  for (int64_t T : {1, 7, 16}) {
    for (const OpCase& test : op_cases(2, T)) {
      CAPTURE(test.name);
      CAPTURE(T);
      CHECK(fused_against_composed(test.op, test.inputs) < 1e-12);
    }
  }
}

TEST_CASE("gradients of ops on qkv are central differences, fused and composed") {
  for (const OpCase& test : op_cases(2, 5)) {
    CAPTURE(test.name);
    check_gradients(test.op, test.inputs);
    check_gradients(test.op, test.inputs, composed_ops);
  }
}

TEST_CASE("in float the fast kernels, the reference kernels and the composition are near the double result") {
  for (int64_t T : {1, 20}) {
    for (const OpCase& test : op_cases(2, T)) {
      CAPTURE(test.name);
      CAPTURE(T);
      CHECK(float_against_double(test.op, test.inputs) < 1e-5);
      CHECK(float_against_double(test.op, test.inputs, reference_kernels) < 1e-5);
      CHECK(float_against_double(test.op, test.inputs, composed_ops) < 1e-5);
    }
  }
}

TEST_CASE("ops on qkv give the same bits for any number of threads") {
  for (const OpCase& test : op_cases(1, 67)) {
    CAPTURE(test.name);
    CHECK(same_bits_for_all_threads(test.op, test.inputs));
  }
}

TEST_CASE("an op on qkv adds its gradient to what another reader left") {
  for (const OpCase& test : op_cases(1, 5)) {
    CAPTURE(test.name);
    const Op twice = [&](Tape& tape, const std::vector<Var>& in) {
      Var first = test.op(tape, in);
      return add(first, test.op(tape, in));
    };
    const Outcome once = run(test.op, test.inputs, DType::float32);
    const Outcome both = run(twice, test.inputs, DType::float32);
    for (size_t i = 0; i < once.gradients.size(); ++i) {
      std::vector<double> doubled = once.gradients[i];
      for (double& value : doubled) {
        value *= 2;
      }
      CHECK(difference(both.gradients[i], doubled) < 1e-6);
    }
  }
}

TEST_CASE("attention's memory grows with T, not with T x T") {
  const QkvLayout layout = {.n_heads = 2, .n_kv_heads = 2, .head_dim = 8};
  const Op op = [=](Tape&, const std::vector<Var>& in) { return causal_attention(in[0], layout); };
  const auto bytes = [&](int64_t T, DType dtype, TapeOptions options = {}) {
    const std::vector<Buffer> inputs = list(normal_values({1, T, layout.width()}, 1));
    return static_cast<double>(run(op, inputs, dtype, options).bytes_in_use);
  };
  for (DType dtype : {DType::float32, DType::float64}) {
    CHECK(bytes(256, dtype) < 5 * bytes(64, dtype));
    CHECK(bytes(1024, dtype) < 5 * bytes(256, dtype));
  }
  // The measure can tell:
  CHECK(bytes(256, DType::float32, composed_ops) > 5 * bytes(64, DType::float32, composed_ops));
}

TEST_CASE("an op whose qkv needs no gradient still runs, and gates pass theirs on alone") {
  const QkvLayout layout = {.n_heads = 2, .n_kv_heads = 1, .head_dim = 8, .gated = true};
  const Buffer qkv = normal_values({1, 3, layout.width()}, 1);
  Buffer constant(qkv.tensor().shape, DType::float32);
  copy_values(qkv.tensor(), constant.tensor());
  const Op op = [&](Tape& tape, const std::vector<Var>& in) {
    Var fixed = tape.constant(constant.tensor());
    return attention_gate(add(causal_attention(fixed, layout), in[0]), fixed, layout);
  };
  const Op with_gradient = [&](Tape&, const std::vector<Var>& in) {
    return attention_gate(add(causal_attention(in[1], layout), in[0]), in[1], layout);
  };
  const auto attended = [] { return normal_values({1, 3, 16}, 2); };
  const Outcome found = run(op, list(attended()), DType::float32);
  const Outcome expected =
      run(with_gradient, list(attended(), normal_values({1, 3, layout.width()}, 1)), DType::float32);
  CHECK(found.value == expected.value);
  CHECK(found.gradients[0] == expected.gradients[0]);
}

TEST_CASE("wrong operands of ops on qkv are named with both shapes") {
  const QkvLayout layout = {.n_heads = 4, .n_kv_heads = 2, .head_dim = 8};
  const QkvLayout gated = {.n_heads = 4, .n_kv_heads = 2, .head_dim = 8, .gated = true};
  Tape tape;
  Buffer right({2, 3, 64}, DType::float32);
  Buffer wrong({2, 3, 60}, DType::float32);
  Buffer gain({8}, DType::float32);
  Buffer double_gain({8}, DType::float64);
  Buffer short_gain({4}, DType::float32);
  Buffer table({3, 4}, DType::float32);
  Buffer long_table({4, 4}, DType::float32);
  Buffer wide_table({3, 5}, DType::float32);
  Buffer double_table({3, 4}, DType::float64);
  Var x = tape.variable(right.tensor());
  Var bad = tape.variable(wrong.tensor());
  Var g = tape.variable(gain.tensor());
  const auto message = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      CHECK(error.fault() == Fault::input);
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string shape_message = message([&] { causal_attention(bad, layout); });
  CHECK(shape_message.find("[causal_attention]") != std::string::npos);
  CHECK(shape_message.find("[2, 3, 60]") != std::string::npos);
  CHECK(shape_message.find("64") != std::string::npos);
  CHECK(message([&] { causal_attention(x, {.n_heads = 3, .n_kv_heads = 2, .head_dim = 8}); }).find("3 and 2") !=
        std::string::npos);
  CHECK_THROWS_AS(causal_attention(x, gated), Error);
  CHECK_THROWS_AS(causal_attention(g, layout), Error);
  CHECK_THROWS_AS(rope(x, layout, long_table.tensor(), long_table.tensor()), Error);
  CHECK_THROWS_AS(rope(x, layout, wide_table.tensor(), wide_table.tensor()), Error);
  CHECK_THROWS_AS(rope(x, layout, table.tensor(), long_table.tensor()), Error);
  CHECK_THROWS_AS(rope(x, layout, double_table.tensor(), double_table.tensor()), Error);
  CHECK_THROWS_AS(qk_norm(x, g, tape.variable(short_gain.tensor()), layout, 1e-6), Error);
  CHECK_THROWS_AS(qk_norm(x, g, tape.variable(double_gain.tensor()), layout, 1e-6), Error);
  CHECK_THROWS_AS(attention_gate(x, x, layout), Error);
  CHECK_THROWS_AS(attention_gate(x, bad, gated), Error);
  CHECK_NOTHROW(rope(x, layout, table.tensor(), table.tensor()));
  CHECK_NOTHROW(qk_norm(x, g, g, layout, 1e-6));
}
