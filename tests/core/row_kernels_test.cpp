// Fast kernels over rows against their reference: rmsnorm, softmax, log_softmax, sums.

#include "core/kernels/reduce.h"
#include "core/kernels/rmsnorm.h"
#include "core/kernels/softmax.h"
#include "core/parallel.h"
#include "core/rng.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace minillm;
using namespace minillm::kernels;

namespace {

using Values = std::vector<float>;

Values random_rows(int64_t count, uint64_t seed) {
  RandomStream stream(random_key(seed, "rows"));
  Values values(static_cast<size_t>(count));
  for (float& value : values) {
    value = static_cast<float>(stream.normal());
  }
  return values;
}

double worst_difference(const Values& a, const Values& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    worst = std::isnan(difference) ? HUGE_VAL : std::max(worst, difference);
  }
  return worst;
}

struct RmsnormResult {
  Values y, rstd, dx, dw;
};

RmsnormResult rmsnorm_result(bool fast, int64_t R, int64_t d, double offset) {
  const Values x = random_rows(R * d, 1);
  const Values w = random_rows(d, 2);
  const Values dy = random_rows(R * d, 3);
  RmsnormResult result = {Values(x.size()), Values(static_cast<size_t>(R)), random_rows(R * d, 4), random_rows(d, 5)};
  if (fast) {
    Values partial(static_cast<size_t>(rmsnorm_partials(R) * d), 1e30F);
    rmsnorm_forward(x.data(), w.data(), result.y.data(), result.rstd.data(), R, d, 1e-6, offset);
    rmsnorm_backward(dy.data(), x.data(), w.data(), result.rstd.data(), result.dx.data(), result.dw.data(),
                     partial.data(), R, d, offset);
  } else {
    rmsnorm_forward_reference(x.data(), w.data(), result.y.data(), result.rstd.data(), R, d, 1e-6, offset);
    rmsnorm_backward_reference(dy.data(), x.data(), w.data(), result.rstd.data(), result.dx.data(), result.dw.data(), R,
                               d, offset);
  }
  return result;
}

}  // namespace

TEST_CASE("rmsnorm: fast equals reference, and adds to what is in dx and dw") {
  for (const auto& size : std::vector<std::array<int64_t, 2>>{{1, 1}, {3, 5}, {64, 16}, {65, 33}, {200, 256}}) {
    const int64_t R = size[0];
    const int64_t d = size[1];
    for (double offset : {0.0, 1.0}) {
      CAPTURE(R);
      CAPTURE(d);
      const RmsnormResult fast = rmsnorm_result(true, R, d, offset);
      const RmsnormResult reference = rmsnorm_result(false, R, d, offset);
      CHECK(worst_difference(fast.y, reference.y) < 1e-5);
      CHECK(worst_difference(fast.rstd, reference.rstd) < 1e-5);
      CHECK(worst_difference(fast.dx, reference.dx) < 1e-5);
      CHECK(worst_difference(fast.dw, reference.dw) < 1e-4);
    }
  }
}

TEST_CASE("rmsnorm: null dx or dw is left out") {
  const Values x = random_rows(6, 1);
  const Values w = random_rows(3, 2);
  Values rstd(2);
  Values y(6);
  Values partial(3);
  Values dx(6, 0.0F);
  Values dw(3, 0.0F);
  rmsnorm_forward(x.data(), w.data(), y.data(), rstd.data(), 2, 3, 1e-6, 0);
  rmsnorm_backward(x.data(), x.data(), w.data(), rstd.data(), dx.data(), nullptr, partial.data(), 2, 3, 0);
  rmsnorm_backward(x.data(), x.data(), w.data(), rstd.data(), nullptr, dw.data(), partial.data(), 2, 3, 0);
  const Values none(3, 0.0F);
  CHECK(worst_difference(dw, none) > 0.1);
  CHECK(std::abs(dx[0]) > 0);
}

TEST_CASE("softmax and log_softmax: fast equals reference") {
  for (const auto& size : std::vector<std::array<int64_t, 2>>{{1, 1}, {3, 7}, {5, 16}, {40, 33}, {9, 2048}}) {
    const int64_t R = size[0];
    const int64_t N = size[1];
    CAPTURE(R);
    CAPTURE(N);
    const Values x = random_rows(R * N, 1);
    const Values dy = random_rows(R * N, 2);
    Values y_fast(x.size());
    Values y_reference(x.size());
    Values dx_fast = random_rows(R * N, 3);
    Values dx_reference = dx_fast;
    softmax_forward(x.data(), y_fast.data(), R, N);
    softmax_forward_reference(x.data(), y_reference.data(), R, N);
    softmax_backward(dy.data(), y_fast.data(), dx_fast.data(), R, N);
    softmax_backward_reference(dy.data(), y_reference.data(), dx_reference.data(), R, N);
    CHECK(worst_difference(y_fast, y_reference) < 1e-6);
    CHECK(worst_difference(dx_fast, dx_reference) < 1e-6);
    log_softmax_forward(x.data(), y_fast.data(), R, N);
    log_softmax_forward_reference(x.data(), y_reference.data(), R, N);
    log_softmax_backward(dy.data(), y_fast.data(), dx_fast.data(), R, N);
    log_softmax_backward_reference(dy.data(), y_reference.data(), dx_reference.data(), R, N);
    CHECK(worst_difference(y_fast, y_reference) < 5e-6);
    CHECK(worst_difference(dx_fast, dx_reference) < 2e-5);
  }
}

TEST_CASE("a fully masked row gives softmax 0, and NaN is not hidden") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const Values masked(5, -inf);
  Values y(5, 1.0F);
  softmax_forward(masked.data(), y.data(), 1, 5);
  CHECK(worst_difference(y, Values(5, 0.0F)) == 0);
  softmax_forward_reference(masked.data(), y.data(), 1, 5);
  CHECK(worst_difference(y, Values(5, 0.0F)) == 0);
  Values poisoned = masked;
  poisoned[2] = std::numeric_limits<float>::quiet_NaN();
  softmax_forward(poisoned.data(), y.data(), 1, 5);
  CHECK(std::isnan(y[2]));
  softmax_forward_reference(poisoned.data(), y.data(), 1, 5);
  CHECK(std::isnan(y[2]));
}

TEST_CASE("sum_values keeps what a float sum would lose") {
  const Values tenths(1000003, 0.1F);
  const double want = 1000003 * static_cast<double>(0.1F);
  CHECK(sum_values(tenths.data(), 1000003) == doctest::Approx(want).epsilon(1e-12));
  const Values odd = {1, 2, 3};
  CHECK(sum_values(odd.data(), 3) == 6);
  CHECK(sum_values(odd.data(), 0) == 0);
}

TEST_CASE("row kernels give the same bits for 1, 2, 3 and 4 threads") {
  RmsnormResult first;
  for (int threads : {1, 2, 3, 4}) {
    CAPTURE(threads);
    set_num_threads(threads);
    const RmsnormResult result = rmsnorm_result(true, 333, 48, 0);
    if (threads == 1) {
      first = result;
    }
    CHECK(result.y == first.y);
    CHECK(result.dx == first.dx);
    CHECK(result.dw == first.dw);
  }
  set_num_threads(2);
}
