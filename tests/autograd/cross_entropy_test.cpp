#include "autograd/ops.h"
#include "tests/autograd/op_test.h"

#include <doctest/doctest.h>

#include <limits>

using namespace minillm;
using namespace minillm::test;

namespace {

Op loss_of(std::vector<int32_t> targets) {
  return [targets](Tape&, const std::vector<Var>& inputs) { return cross_entropy(inputs[0], targets); };
}

Op linear_loss_of(std::vector<int32_t> targets) {
  return
      [targets](Tape&, const std::vector<Var>& inputs) { return linear_cross_entropy(inputs[0], inputs[1], targets); };
}

/// Classes of [0, V), about every fifth row not counted.
std::vector<int32_t> random_targets(int64_t R, int64_t V) {
  RandomStream stream(random_key(3, "targets"));
  std::vector<int32_t> targets(static_cast<size_t>(R));
  for (int32_t& target : targets) {
    target = stream.below(5) == 0 ? -1 : static_cast<int32_t>(stream.below(static_cast<uint64_t>(V)));
  }
  return targets;
}

std::vector<Buffer> logits_of(int64_t R, int64_t V, double spread = 2) {
  std::vector<Buffer> inputs;
  inputs.push_back(normal_values({R, V}, 1, spread));
  return inputs;
}

std::vector<Buffer> hidden_and_weight(int64_t R, int64_t d, int64_t V) {
  std::vector<Buffer> inputs;
  inputs.push_back(normal_values({R, d}, 1));
  inputs.push_back(normal_values({V, d}, 2, 0.3));
  return inputs;
}

struct LossAndGradient {
  double loss;
  std::vector<double> gradient;
};

LossAndGradient of_row(std::vector<double> row, int32_t target, DType dtype, TapeOptions options) {
  Tape tape(options);
  Buffer values({1, static_cast<int64_t>(row.size())}, DType::float64);
  std::copy(row.begin(), row.end(), values.tensor().as<double>());
  Buffer logits(values.tensor().shape, dtype);
  copy_values(values.tensor(), logits.tensor());
  Var x = tape.variable(logits.tensor());
  Var loss = cross_entropy(x, std::vector<int32_t>{target});
  CHECK(loss.dtype() == DType::float64);
  tape.backward(loss);
  return {loss.item(), values_of(x.grad())};
}

}  // namespace

TEST_CASE("cross_entropy is stable for logits of any size") {
  for (const TapeOptions& options : {TapeOptions{}, reference_kernels, composed_ops}) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      const LossAndGradient large = of_row({-431, 279, 427}, 0, dtype, options);
      CHECK(large.loss == 858.0);
      CHECK(large.gradient[0] == -1);
      CHECK(std::abs(large.gradient[1]) < 1e-60);
      CHECK(large.gradient[2] == 1);
      const LossAndGradient huge = of_row({0, -1e30}, 1, dtype, options);
      CHECK(huge.loss == doctest::Approx(1e30).epsilon(1e-7));
      CHECK(huge.gradient == std::vector<double>{1, -1});
    }
  }
}

TEST_CASE("cross_entropy of equal logits is ln V") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const LossAndGradient even = of_row(std::vector<double>(50, 3.0), 7, dtype, {});
    CHECK(even.loss == doctest::Approx(std::log(50.0)).epsilon(1e-7));
    CHECK(even.gradient[0] == doctest::Approx(1.0 / 50));
    CHECK(even.gradient[7] == doctest::Approx(1.0 / 50 - 1));
  }
}

TEST_CASE("cross_entropy: fused, composed, reference and fast agree") {
  const std::vector<Buffer> inputs = logits_of(70, 203);
  const Op op = loss_of(random_targets(70, 203));
  CHECK(fused_against_composed(op, inputs) < 1e-12);
  CHECK(float_against_double(op, inputs) < 1e-6);
  CHECK(float_against_double(op, inputs, reference_kernels) < 1e-6);
  CHECK(float_against_double(op, inputs, composed_ops) < 1e-6);
}

TEST_CASE("linear_cross_entropy: fused, composed, reference and fast agree") {
  // 1,100 rows are more than one chunk of rows of a small vocabulary, the last one shorter.
  const std::vector<Buffer> inputs = hidden_and_weight(1100, 24, 101);
  const Op op = linear_loss_of(random_targets(1100, 101));
  CHECK(fused_against_composed(op, inputs) < 1e-12);
  CHECK(float_against_double(op, inputs) < 3e-6);
  CHECK(float_against_double(op, inputs, reference_kernels) < 3e-6);
  CHECK(float_against_double(op, inputs, composed_ops) < 3e-6);
}

TEST_CASE("cross_entropy and linear_cross_entropy: gradients against differences") {
  const std::vector<int32_t> targets = {2, -1, 0, 4, 4};
  const std::vector<Buffer> logits = logits_of(5, 6);
  const std::vector<Buffer> inputs = hidden_and_weight(5, 4, 6);
  for (const TapeOptions& options : {TapeOptions{}, composed_ops}) {
    check_gradients(loss_of(targets), logits, options);
    check_gradients(linear_loss_of(targets), inputs, options);
  }
}

TEST_CASE("the losses have the same bits for 1, 2, 3 and 4 threads") {
  CHECK(same_bits_for_all_threads(loss_of(random_targets(70, 203)), logits_of(70, 203)));
  CHECK(same_bits_for_all_threads(linear_loss_of(random_targets(1100, 301)), hidden_and_weight(1100, 40, 301)));
}

TEST_CASE("rows with a negative target are not counted") {
  const std::vector<Buffer> all = hidden_and_weight(6, 8, 10);
  std::vector<Buffer> counted = hidden_and_weight(6, 8, 10);
  counted[0] = Buffer({3, 8}, DType::float64);
  copy_values(all[0].tensor().rows(1, 3), counted[0].tensor());
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Outcome with_others = run(linear_loss_of({-1, 3, 9, 0, -100, -1}), all, dtype);
    const Outcome alone = run(linear_loss_of({3, 9, 0}), counted, dtype);
    CHECK(with_others.value[0] == doctest::Approx(alone.value[0]).epsilon(1e-6));
    CHECK(difference(with_others.gradients[1], alone.gradients[1]) < 1e-6);
    const std::vector<double>& dhidden = with_others.gradients[0];
    CHECK(std::all_of(dhidden.begin(), dhidden.begin() + 8, [](double g) { return g == 0; }));
    CHECK(std::all_of(dhidden.begin() + 32, dhidden.end(), [](double g) { return g == 0; }));
  }
}

TEST_CASE("with no counted row the loss is 0 and so is every gradient") {
  const std::vector<int32_t> none = {-1, -1, -1};
  for (const TapeOptions& options : {TapeOptions{}, reference_kernels, composed_ops}) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      for (const Outcome& outcome : {run(loss_of(none), logits_of(3, 5), dtype, options),
                                     run(linear_loss_of(none), hidden_and_weight(3, 4, 5), dtype, options)}) {
        CHECK(outcome.value[0] == 0);
        for (const std::vector<double>& gradient : outcome.gradients) {
          CHECK(std::all_of(gradient.begin(), gradient.end(), [](double g) { return g == 0; }));
        }
      }
    }
  }
}

TEST_CASE("a NaN or infinite logit makes the loss non-finite") {
  for (const double broken : {std::nan(""), HUGE_VAL}) {
    for (const TapeOptions& options : {TapeOptions{}, reference_kernels}) {
      std::vector<double> row(40, 0.5);
      row[33] = broken;
      CHECK(!std::isfinite(of_row(row, 2, DType::float32, options).loss));
    }
  }
}

TEST_CASE("linear_cross_entropy scales its gradients by the upstream one and adds them") {
  const std::vector<Buffer> inputs = hidden_and_weight(9, 8, 12);
  const std::vector<int32_t> targets = random_targets(9, 12);
  std::vector<std::vector<double>> gradients;
  for (const double seed : {1.0, 0.25}) {
    Tape tape;
    Buffer hidden({9, 8}, DType::float32);
    Buffer weight({12, 8}, DType::float32);
    copy_values(inputs[0].tensor(), hidden.tensor());
    copy_values(inputs[1].tensor(), weight.tensor());
    Var h = tape.variable(hidden.tensor());
    Var w = tape.variable(weight.tensor());
    tape.backward(linear_cross_entropy(h, w, targets), seed);
    gradients.push_back(values_of(h.grad()));
    gradients.push_back(values_of(w.grad()));
  }
  for (size_t k = 0; k < 2; ++k) {
    std::vector<double> quarter = gradients[k];
    for (double& value : quarter) {
      value *= 0.25;
    }
    CHECK(gradients[k + 2] == quarter);
  }
}

TEST_CASE("linear_cross_entropy without gradients has the same loss and saves nothing") {
  const std::vector<Buffer> inputs = hidden_and_weight(300, 16, 500);
  const std::vector<int32_t> targets = random_targets(300, 500);
  Buffer hidden({300, 16}, DType::float32);
  Buffer weight({500, 16}, DType::float32);
  copy_values(inputs[0].tensor(), hidden.tensor());
  copy_values(inputs[1].tensor(), weight.tensor());
  Tape recording;
  Tape silent(TapeOptions{.record = false});
  const Var with =
      linear_cross_entropy(recording.variable(hidden.tensor()), recording.variable(weight.tensor()), targets);
  const Var without = linear_cross_entropy(silent.variable(hidden.tensor()), silent.variable(weight.tensor()), targets);
  CHECK(with.item() == without.item());
  CHECK(silent.bytes_in_use() < 8192);
  CHECK(recording.bytes_in_use() < sizeof(float) * 300 * 500);  // far less than [R, V]
}

TEST_CASE("losses name a target outside the vocabulary, and a wrong number of targets") {
  Tape tape;
  Buffer hidden({2, 4}, DType::float32);
  Buffer weight({5, 4}, DType::float32);
  Buffer narrow({5, 3}, DType::float32);
  Var h = tape.variable(hidden.tensor());
  Var w = tape.variable(weight.tensor());
  const std::vector<int32_t> too_large = {1, 5};
  const std::vector<int32_t> too_many = {1, 2, 3};
  CHECK_THROWS_WITH_AS(linear_cross_entropy(h, w, too_large),
                       doctest::Contains("target 5 at position 1 is not below the vocabulary's 5"), Error);
  CHECK_THROWS_WITH_AS(cross_entropy(h, too_large), doctest::Contains("target 5 at position 1"), Error);
  CHECK_THROWS_WITH_AS(cross_entropy(h, too_many), doctest::Contains("2 rows need as many targets; found 3"), Error);
  CHECK_THROWS_WITH_AS(linear_cross_entropy(h, tape.variable(narrow.tensor()), std::vector<int32_t>{1, 1}),
                       doctest::Contains("found hidden [2, 4], weight [5, 3]"), Error);
}

// --- tied weights: the table that embeds is the one that classifies ---

namespace {

const std::vector<int32_t> tied_ids = {1, 4, 4, 0, 7};
const std::vector<int32_t> tied_targets = {4, 4, 0, 7, 2};

Var tied_loss(Var table) {
  return linear_cross_entropy(embedding(table, tied_ids), table, tied_targets);
}

double tied_loss_of(const Tensor& table) {
  Tape tape;
  return tied_loss(tape.constant(table)).item();
}

}  // namespace

TEST_CASE("a tied weight gets the gradients of both uses") {
  const Buffer table = normal_values({9, 6}, 8);
  double* values = table.tensor().as<double>();
  std::vector<std::vector<double>> gradients;
  for (const DType dtype : {DType::float64, DType::float32}) {
    ParameterStore store;
    Parameter& parameter = store.declare("weight", {9, 6}, Init::constant(0));
    store.allocate(dtype);
    copy_values(table.tensor(), parameter.value);
    store.zero_gradients();
    Tape tape;
    tape.backward(tied_loss(tape.parameter(parameter)));
    store.finish_gradients();
    gradients.push_back(values_of(parameter.grad));
  }
  CHECK(difference(gradients[1], gradients[0]) < 1e-6);
  RandomStream stream(random_key(9, "entries"));
  for (int entry = 0; entry < 20; ++entry) {
    const size_t i = static_cast<size_t>(stream.below(54));
    const double x = values[i];
    constexpr double h = 1e-5;
    values[i] = x + h;
    const double above = tied_loss_of(table.tensor());
    values[i] = x - h;
    const double below = tied_loss_of(table.tensor());
    values[i] = x;
    CHECK(std::abs(gradients[0][i] - (above - below) / (2 * h)) < 1e-8);
  }
}
