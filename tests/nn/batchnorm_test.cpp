// BatchNorm: what it does to a token, and what its running averages become.

#include "nn/norm.h"
#include "tests/autograd/op_test.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace minillm;
using test::normal_values;

namespace {

constexpr int64_t width = 6;
constexpr double eps = 1e-5;

/// A BatchNorm with gain 2 and bias 3.
class Bench {
 public:
  Bench() {
    config_.vocab_size = 11;
    config_.norm = "batchnorm";
    config_.norm_eps = eps;
    norm_ = make_norm(config_, Scope(store_, "norm"), width);
    store_.allocate(DType::float64);
    store_.initialize(1);
    for (int64_t j = 0; j < width; ++j) {
      tensor("norm.weight").set(j, 2);
      tensor("norm.bias").set(j, 3);
    }
  }

  Tensor tensor(std::string_view name) const {
    for (const NamedTensor& named : store_.named_tensors()) {
      if (named.name == name) {
        return named.value;
      }
    }
    FAIL("no tensor of that name");
    return {};
  }

  std::vector<double> run(const Buffer& x, bool training) const {
    Tape tape({.training = training});
    Var y = norm_->forward(tape.constant(x.tensor()));
    std::vector<double> values;
    for (int64_t i = 0; i < y.value().numel(); ++i) {
      values.push_back(y.value().at(i));
    }
    return values;
  }

  ParameterStore& store() { return store_; }

 private:
  ModelConfig config_;
  ParameterStore store_;
  std::unique_ptr<Norm> norm_;
};

/// The first `count` tokens of x [1, T, width] as a batch of their own.
Buffer first_tokens(const Buffer& x, int64_t count) {
  Buffer part({1, count, width}, DType::float64);
  std::copy_n(x.tensor().as<double>(), count * width, part.tensor().as<double>());
  return part;
}

}  // namespace

TEST_CASE("BatchNorm makes nothing of a token that stands alone") {
  const Bench bench;
  for (const double y : bench.run(normal_values({1, 1, width}, 1), true)) {
    CHECK(y == 3);
  }
}

TEST_CASE("BatchNorm: a token depends on its batch in training and not afterwards") {
  const Bench bench;
  const Buffer x = normal_values({1, 8, width}, 2);
  const Buffer fewer = first_tokens(x, 4);
  double difference = 0;
  const std::vector<double> together = bench.run(x, true);
  const std::vector<double> apart = bench.run(fewer, true);
  for (size_t i = 0; i < apart.size(); ++i) {
    difference = std::max(difference, std::abs(together[i] - apart[i]));
  }
  CHECK(difference > 0.1);
  const std::vector<double> later = bench.run(x, false);
  const std::vector<double> later_apart = bench.run(fewer, false);
  CHECK(std::equal(later_apart.begin(), later_apart.end(), later.begin()));
}

TEST_CASE("running averages move by a tenth towards the mean over an update's micro-batches") {
  Bench bench;
  const Buffer batches[] = {normal_values({2, 3, width}, 3), normal_values({2, 3, width}, 4)};
  for (const Buffer& x : batches) {
    bench.run(x, true);
  }
  CHECK(bench.tensor("norm.running_mean").at(0) == 0);
  bench.store().updated();
  for (int64_t j = 0; j < width; ++j) {
    double mean = 0;
    double variance = 0;
    for (const Buffer& x : batches) {
      double sum = 0;
      double squares = 0;
      for (int64_t row = 0; row < 6; ++row) {
        sum += x.tensor().at(row * width + j) / 6;
      }
      for (int64_t row = 0; row < 6; ++row) {
        squares += std::pow(x.tensor().at(row * width + j) - sum, 2) / 5;
      }
      mean += sum / 2;
      variance += squares / 2;
    }
    CHECK(bench.tensor("norm.running_mean").at(j) == doctest::Approx(0.1 * mean).epsilon(1e-12));
    CHECK(bench.tensor("norm.running_var").at(j) == doctest::Approx(0.9 + 0.1 * variance).epsilon(1e-12));
  }
  const double moved = bench.tensor("norm.running_mean").at(0);
  bench.store().updated();
  CHECK(bench.tensor("norm.running_mean").at(0) == moved);
}

TEST_CASE("running averages are no parameters") {
  Bench bench;
  CHECK(bench.store().count() == 2 * width);
  int64_t buffers = 0;
  for (const NamedTensor& tensor : bench.store().named_tensors()) {
    buffers += tensor.is_buffer ? tensor.value.numel() : 0;
  }
  CHECK(buffers == 2 * width);
}
