#include "core/kernels/dropout.h"
#include "autograd/ops.h"
#include "tests/autograd/op_test.h"

#include <doctest/doctest.h>

using namespace minillm;
using namespace minillm::test;

namespace {

constexpr double p = 0.3;
constexpr int64_t N = 100003;  // ends inside a chunk, a group and a block

Op drop(const char* stream = "model.embed") {
  return [stream](Tape&, const std::vector<Var>& inputs) { return dropout(inputs[0], p, stream); };
}

std::vector<Buffer> ones(int64_t count) {
  std::vector<Buffer> inputs;
  inputs.emplace_back(Shape{count}, DType::float64);
  std::fill_n(inputs[0].tensor().as<double>(), count, 1.0);
  return inputs;
}

/// 0 or 1 an element.
std::vector<double> mask(RandomKey key, const char* stream) {
  Tape tape;
  tape.set_random_key(key);
  const std::vector<Buffer> inputs = ones(N);
  std::vector<double> kept = values_of(dropout(tape.constant(inputs[0].tensor()), p, stream).value());
  for (double& value : kept) {
    value = value > 0 ? 1 : 0;
  }
  return kept;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) {
    sum += value;
  }
  return sum / static_cast<double>(values.size());
}

/// The correlation of a[i] and b[i + lag]; its standard deviation for independent masks is 1 / sqrt(N).
double correlation(const std::vector<double>& a, const std::vector<double>& b, size_t lag = 0) {
  double sum = 0;
  for (size_t i = 0; i + lag < a.size(); ++i) {
    sum += (a[i] - (1 - p)) * (b[i + lag] - (1 - p));
  }
  return sum / static_cast<double>(a.size()) / (p * (1 - p));
}

const double five_sigma = 5 / std::sqrt(static_cast<double>(N));

}  // namespace

TEST_CASE("dropout keeps a share of 1 - p and divides by it") {
  const std::vector<Buffer> inputs = ones(N);
  for (const TapeOptions& options : {TapeOptions{}, reference_kernels}) {
    const std::vector<double> y = run(drop(), inputs, DType::float32, options).value;
    CHECK(std::abs(mean_of(y) - 1) < five_sigma * std::sqrt(p / (1 - p)));
    CHECK(std::all_of(y.begin(), y.end(),
                      [](double value) { return value == 0 || std::abs(value - 1 / (1 - p)) < 1e-6; }));
  }
}

TEST_CASE("dropout: backward has forward's mask, in every version") {
  const std::vector<Buffer> inputs = ones(4099);
  const std::vector<double> kept = run(drop(), inputs, DType::float64, reference_kernels).value;
  std::vector<double> projection = projection_weights(0, 4099);
  for (size_t i = 0; i < kept.size(); ++i) {
    projection[i] *= kept[i];
  }
  for (const TapeOptions& options : {TapeOptions{}, reference_kernels, composed_ops}) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      const Outcome outcome = run(drop(), inputs, dtype, options);
      CHECK(difference(outcome.value, kept) < 1e-7);
      CHECK(difference(outcome.gradients[0], projection) < 1e-6);
    }
  }
}

TEST_CASE("dropout: fused, composed, reference and fast agree") {
  std::vector<Buffer> inputs;
  inputs.push_back(normal_values({3, 1001}, 5));
  CHECK(fused_against_composed(drop(), inputs) < 1e-12);
  CHECK(float_against_double(drop(), inputs) < 1e-6);
}

TEST_CASE("dropout: the fast mask is the reference's far into a stream") {
  std::vector<float> x(N, 1.0F);
  std::vector<float> fast(N);
  std::vector<float> reference(N);
  kernels::dropout_forward(x.data(), fast.data(), N, p, 0x0123456789abcdef);
  kernels::dropout_forward_reference(x.data(), reference.data(), N, p, 0x0123456789abcdef);
  CHECK(fast == reference);
}

TEST_CASE("dropout: gradient against differences") {
  check_gradients(drop(), list(normal_values({4, 5}, 6)));
}

TEST_CASE("dropout: the same bits for 1, 2, 3 and 4 threads") {
  CHECK(same_bits_for_all_threads(drop(), ones(N)));
}

TEST_CASE("dropout: streams and keys are independent, equal ones equal") {
  const std::vector<double> first = mask(1, "layers.0.attn");
  CHECK(mask(1, "layers.0.attn") == first);
  CHECK(std::abs(correlation(first, mask(1, "layers.0.mlp"))) < five_sigma);
  CHECK(std::abs(correlation(first, mask(1, "layers.1.attn"))) < five_sigma);
  CHECK(std::abs(correlation(first, mask(2, "layers.0.attn"))) < five_sigma);
  for (const size_t lag : {1, 2, 3, 4, 64, 256}) {
    CHECK(std::abs(correlation(first, first, lag)) < five_sigma);
  }
}

TEST_CASE("dropout is the identity when p is 0 or the tape does not train") {
  Buffer x({3}, DType::float32);
  Tape training;
  Var a = training.variable(x.tensor());
  CHECK(dropout(a, 0, "s").id() == a.id());
  CHECK(dropout(a, 0.5, "s").id() != a.id());
  Tape evaluating(TapeOptions{.training = false});
  Var b = evaluating.variable(x.tensor());
  CHECK(dropout(b, 0.5, "s").id() == b.id());
}

TEST_CASE("dropout refuses a probability outside [0, 1)") {
  Tape tape;
  Buffer x({3}, DType::float32);
  Var a = tape.variable(x.tensor());
  for (const double bad : {1.0, -0.1, std::nan("")}) {
    CHECK_THROWS_WITH_AS(dropout(a, bad, "s"), doctest::Contains("must be in [0, 1)"), Error);
  }
}
