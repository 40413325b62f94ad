#include "core/kernels/qk_norm.h"

#include "core/kernels/rmsnorm.h"
#include "tests/core/qkv_support.h"

#include <doctest/doctest.h>

using namespace minillm;
using namespace minillm::kernels;

namespace {

constexpr double eps = 1e-6;

template <class Real>
struct NormResult {
  std::vector<Real> y;
  std::vector<Real> rstd;
  std::vector<Real> dx;
  std::vector<Real> dq_gain;
  std::vector<Real> dk_gain;
};

template <class Real>
NormResult<Real> empty_result(int64_t R, const QkvLayout& layout) {
  const size_t size = static_cast<size_t>(R * layout.width());
  const size_t d = static_cast<size_t>(layout.head_dim);
  return {std::vector<Real>(size), std::vector<Real>(static_cast<size_t>(R * layout.qk_slices())),
          std::vector<Real>(size), std::vector<Real>(d), std::vector<Real>(d)};
}

/// Inputs of one comparison.
struct Inputs {
  std::vector<double> x;
  std::vector<double> dy;
  std::vector<double> q_gain;
  std::vector<double> k_gain;
};

Inputs random_inputs(int64_t R, const QkvLayout& layout) {
  return {rounded(random_values(R * layout.width(), "x")), rounded(random_values(R * layout.width(), "dy")),
          rounded(random_values(layout.head_dim, "q_gain")), rounded(random_values(layout.head_dim, "k_gain"))};
}

NormResult<double> run_reference(const Inputs& in, int64_t R, const QkvLayout& layout, double offset) {
  NormResult<double> result = empty_result<double>(R, layout);
  qk_norm_forward_reference(in.x.data(), in.q_gain.data(), in.k_gain.data(), result.y.data(), result.rstd.data(), R,
                            layout, eps, offset);
  qk_norm_backward_reference(in.dy.data(), in.x.data(), in.q_gain.data(), in.k_gain.data(), result.rstd.data(),
                             result.dx.data(), result.dq_gain.data(), result.dk_gain.data(), R, layout, offset);
  return result;
}

NormResult<float> run_fast(const Inputs& in, int64_t R, const QkvLayout& layout, double offset) {
  NormResult<float> result = empty_result<float>(R, layout);
  const std::vector<float> x = to_float(in.x);
  const std::vector<float> dy = to_float(in.dy);
  const std::vector<float> q_gain = to_float(in.q_gain);
  const std::vector<float> k_gain = to_float(in.k_gain);
  std::vector<float> partial(static_cast<size_t>(qk_norm_partials(R) * 2 * layout.head_dim), 1e9F);
  qk_norm_forward(x.data(), q_gain.data(), k_gain.data(), result.y.data(), result.rstd.data(), R, layout, eps, offset);
  qk_norm_backward(dy.data(), x.data(), q_gain.data(), k_gain.data(), result.rstd.data(), result.dx.data(),
                   result.dq_gain.data(), result.dk_gain.data(), partial.data(), R, layout, offset);
  return result;
}

}  // namespace

TEST_CASE("each query and key slice is an rmsnorm of its own; gates and values pass") {
  for (const QkvCase& test : qkv_cases()) {
    CAPTURE(test.name);
    const QkvLayout& layout = test.layout;
    const int64_t R = 3;
    const int64_t d = layout.head_dim;
    const Inputs in = random_inputs(R, layout);
    const NormResult<double> found = run_reference(in, R, layout, 1.0);
    std::vector<double> expected = in.x;
    for (int64_t r = 0; r < R; ++r) {
      for (int64_t h = 0; h < layout.n_heads + layout.n_kv_heads; ++h) {
        const bool is_query = h < layout.n_heads;
        const int64_t column = is_query ? h * layout.q_stride() : layout.k_offset() + (h - layout.n_heads) * d;
        const double* slice = in.x.data() + r * layout.width() + column;
        const double* gain = is_query ? in.q_gain.data() : in.k_gain.data();
        double rstd = 0;
        rmsnorm_forward_reference(slice, gain, expected.data() + r * layout.width() + column, &rstd, 1, d, eps, 1.0);
        CHECK(rstd == found.rstd[static_cast<size_t>(r * layout.qk_slices() + h)]);
      }
    }
    CHECK(found.y == expected);
  }
}

TEST_CASE("fast qk_norm is the reference's, with the same bits for any number of threads") {
  for (const QkvCase& test : qkv_cases()) {
    for (int64_t R : {1, 5, 150}) {
      for (double offset : {0.0, 1.0}) {
        CAPTURE(test.name);
        CAPTURE(R);
        CAPTURE(offset);
        const Inputs in = random_inputs(R, test.layout);
        const NormResult<double> expected = run_reference(in, R, test.layout, offset);
        const NormResult<float> found = run_fast(in, R, test.layout, offset);
        CHECK(relative_error(found.y, expected.y) < 1e-6);
        CHECK(relative_error(found.rstd, expected.rstd) < 1e-6);
        CHECK(relative_error(found.dx, expected.dx) < 1e-6);
        CHECK(relative_error(found.dq_gain, expected.dq_gain) < 2e-6);
        CHECK(relative_error(found.dk_gain, expected.dk_gain) < 2e-6);
        for (int count : {1, 3, 4}) {
          Threads threads(count);
          const NormResult<float> again = run_fast(in, R, test.layout, offset);
          CHECK(again.y == found.y);
          CHECK(again.dx == found.dx);
          CHECK(again.dq_gain == found.dq_gain);
          CHECK(again.dk_gain == found.dk_gain);
        }
      }
    }
  }
}
