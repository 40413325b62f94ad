#include "core/kernels/attention.h"
#include "core/kernels/gemm.h"

#include "tests/core/qkv_support.h"

#include <doctest/doctest.h>

using namespace minillm;
using namespace minillm::kernels;

namespace {

/// Everything attention makes from one qkv and one dout.
template <class Real>
struct Outcome {
  std::vector<Real> out;
  std::vector<Real> stats;
  std::vector<Real> dqkv;
};

template <class Real>
Outcome<Real> empty_result(int64_t B, int64_t T, const QkvLayout& layout) {
  return {std::vector<Real>(static_cast<size_t>(B * T * layout.n_heads * layout.head_dim)),
          std::vector<Real>(static_cast<size_t>(B * layout.n_heads * 2 * T)),
          std::vector<Real>(static_cast<size_t>(B * T * layout.width()))};
}

template <class Real>
Outcome<Real> run_reference(const std::vector<Real>& qkv, const std::vector<Real>& dout, int64_t B, int64_t T,
                            const QkvLayout& layout, bool causal = true) {
  Outcome<Real> result = empty_result<Real>(B, T, layout);
  attention_forward_reference(qkv.data(), result.out.data(), result.stats.data(), B, T, layout, causal);
  attention_backward_reference(dout.data(), qkv.data(), result.out.data(), result.stats.data(), result.dqkv.data(), B,
                               T, layout, causal);
  return result;
}

Outcome<float> run_fast(const std::vector<float>& qkv, const std::vector<float>& dout, int64_t B, int64_t T,
                        const QkvLayout& layout, bool causal = true) {
  Outcome<float> result = empty_result<float>(B, T, layout);
  attention_forward(qkv.data(), result.out.data(), result.stats.data(), B, T, layout, causal);
  attention_backward(dout.data(), qkv.data(), result.out.data(), result.stats.data(), result.dqkv.data(), B, T, layout,
                     causal, false);
  return result;
}

/// The textbook: a whole row of probabilities at a time, written without a look at the kernels.
Outcome<double> run_textbook(const std::vector<double>& qkv, const std::vector<double>& dout, int64_t B, int64_t T,
                             const QkvLayout& layout, bool causal = true) {
  Outcome<double> result = empty_result<double>(B, T, layout);
  const int64_t d = layout.head_dim;
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  const auto at = [&](int64_t b, int64_t t, int64_t column) {
    return static_cast<size_t>((b * T + t) * layout.width() + column);
  };
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < layout.n_heads; ++h) {
      const int64_t q = h * (layout.gated ? 2 : 1) * d;
      const int64_t k = layout.width() - 2 * layout.n_kv_heads * d + h / (layout.n_heads / layout.n_kv_heads) * d;
      const int64_t v = k + layout.n_kv_heads * d;
      for (int64_t t = 0; t < T; ++t) {
        const size_t out = static_cast<size_t>(((b * T + t) * layout.n_heads + h) * d);
        const int64_t keys = causal ? t + 1 : T;
        std::vector<double> p(static_cast<size_t>(keys));
        std::vector<double> dp(p.size());
        for (int64_t u = 0; u < keys; ++u) {
          for (int64_t j = 0; j < d; ++j) {
            p[static_cast<size_t>(u)] += scale * qkv[at(b, t, q + j)] * qkv[at(b, u, k + j)];
          }
        }
        const double largest = *std::max_element(p.begin(), p.end());
        double sum = 0;
        for (double& weight : p) {
          weight = std::exp(weight - largest);
          sum += weight;
        }
        double mean_dp = 0;
        for (int64_t u = 0; u < keys; ++u) {
          p[static_cast<size_t>(u)] /= sum;
          for (int64_t j = 0; j < d; ++j) {
            result.out[out + static_cast<size_t>(j)] += p[static_cast<size_t>(u)] * qkv[at(b, u, v + j)];
            dp[static_cast<size_t>(u)] += dout[out + static_cast<size_t>(j)] * qkv[at(b, u, v + j)];
          }
          mean_dp += p[static_cast<size_t>(u)] * dp[static_cast<size_t>(u)];
        }
        const size_t stats = static_cast<size_t>((b * layout.n_heads + h) * 2 * T + t);
        result.stats[stats] = largest;
        result.stats[stats + static_cast<size_t>(T)] = std::log(sum);
        for (int64_t u = 0; u < keys; ++u) {
          const double ds = p[static_cast<size_t>(u)] * (dp[static_cast<size_t>(u)] - mean_dp) * scale;
          for (int64_t j = 0; j < d; ++j) {
            result.dqkv[at(b, t, q + j)] += ds * qkv[at(b, u, k + j)];
            result.dqkv[at(b, u, k + j)] += ds * qkv[at(b, t, q + j)];
            result.dqkv[at(b, u, v + j)] += p[static_cast<size_t>(u)] * dout[out + static_cast<size_t>(j)];
          }
        }
      }
    }
  }
  return result;
}

std::vector<double> random_qkv(int64_t B, int64_t T, const QkvLayout& layout, double scale = 1) {
  return rounded(random_values(B * T * layout.width(), "qkv", scale));
}

std::vector<double> random_dout(int64_t B, int64_t T, const QkvLayout& layout) {
  return rounded(random_values(B * T * layout.n_heads * layout.head_dim, "dout"));
}

}  // namespace

TEST_CASE("reference attention is the textbook's") {
  for (const QkvCase& test : qkv_cases()) {
    CAPTURE(test.name);
    const int64_t B = 2;
    const int64_t T = 13;
    const std::vector<double> qkv = random_qkv(B, T, test.layout);
    const std::vector<double> dout = random_dout(B, T, test.layout);
    for (const bool causal : {true, false}) {
      CAPTURE(causal);
      const Outcome<double> expected = run_textbook(qkv, dout, B, T, test.layout, causal);
      const Outcome<double> found = run_reference(qkv, dout, B, T, test.layout, causal);
      CHECK(relative_error(found.out, expected.out) < 1e-13);
      CHECK(relative_error(found.stats, expected.stats) < 1e-13);
      CHECK(relative_error(found.dqkv, expected.dqkv) < 1e-13);
    }
  }
}

TEST_CASE("fast attention is the reference's, for lengths around its block sizes") {
  for (const QkvCase& test : qkv_cases()) {
    for (int64_t T : {1, 2, 15, 16, 63, 64, 65, 129, 255, 256, 257, 321, 513, 600}) {
      CAPTURE(test.name);
      CAPTURE(T);
      const int64_t B = T > 100 ? 1 : 3;
      const std::vector<double> qkv = random_qkv(B, T, test.layout);
      const std::vector<double> dout = random_dout(B, T, test.layout);
      for (const bool causal : {true, false}) {
        CAPTURE(causal);
        const Outcome<double> expected = run_reference(qkv, dout, B, T, test.layout, causal);
        const Outcome<float> found = run_fast(to_float(qkv), to_float(dout), B, T, test.layout, causal);
        CHECK(relative_error(found.out, expected.out) < 2e-6);
        CHECK(relative_error(found.stats, expected.stats) < 2e-6);
        CHECK(relative_error(found.dqkv, expected.dqkv) < 4e-6);
      }
    }
  }
}

TEST_CASE("fast attention gives the same bits for any number of threads and at any place in the batch") {
  for (const QkvCase& test : qkv_cases()) {
    CAPTURE(test.name);
    const int64_t T = 150;
    const int64_t B = 3;
    const QkvLayout& layout = test.layout;
    // The same sequence three times.
    std::vector<float> qkv = to_float(random_qkv(1, T, layout));
    std::vector<float> dout = to_float(random_dout(1, T, layout));
    const size_t row = qkv.size();
    const size_t out_row = dout.size();
    for (int copy = 1; copy < B; ++copy) {
      qkv.insert(qkv.end(), qkv.begin(), qkv.begin() + static_cast<int64_t>(row));
      dout.insert(dout.end(), dout.begin(), dout.begin() + static_cast<int64_t>(out_row));
    }
    Threads one(1);
    const Outcome<float> expected = run_fast(qkv, dout, B, T, layout);
    const Outcome<float> encoder = run_fast(qkv, dout, B, T, layout, false);
    for (size_t b = 1; b < static_cast<size_t>(B); ++b) {
      CHECK(std::equal(expected.out.begin(), expected.out.begin() + static_cast<int64_t>(out_row),
                       expected.out.begin() + static_cast<int64_t>(b * out_row)));
      CHECK(std::equal(expected.dqkv.begin(), expected.dqkv.begin() + static_cast<int64_t>(row),
                       expected.dqkv.begin() + static_cast<int64_t>(b * row)));
    }
    for (int threads : {2, 3, 4}) {
      Threads several(threads);
      const Outcome<float> found = run_fast(qkv, dout, B, T, layout);
      CHECK(found.out == expected.out);
      CHECK(found.stats == expected.stats);
      CHECK(found.dqkv == expected.dqkv);
      CHECK(run_fast(qkv, dout, B, T, layout, false).dqkv == encoder.dqkv);
    }
  }
}

TEST_CASE("a token changes no output before it, and gets no gradient from there") {
  const QkvLayout layout = {.n_heads = 4, .n_kv_heads = 2, .head_dim = 16};
  const int64_t T = 200;
  const int64_t out_width = layout.n_heads * layout.head_dim;
  const std::vector<float> dout = to_float(random_dout(1, T, layout));
  const std::vector<float> qkv = to_float(random_qkv(1, T, layout));
  const Outcome<float> before = run_fast(qkv, dout, 1, T, layout);
  for (int64_t changed : {1, 63, 64, 100, 128, 199}) {
    CAPTURE(changed);
    std::vector<float> other = qkv;
    for (int64_t j = 0; j < layout.width(); ++j) {
      other[static_cast<size_t>(changed * layout.width() + j)] += 3.0F;
    }
    const Outcome<float> after = run_fast(other, dout, 1, T, layout);
    const int64_t same = changed * out_width;
    CHECK(std::equal(before.out.begin(), before.out.begin() + same, after.out.begin()));
    CHECK_FALSE(std::equal(before.out.begin() + same, before.out.begin() + same + out_width, after.out.begin() + same));

    std::vector<float> early_dout = dout;
    std::fill(early_dout.begin() + changed * out_width, early_dout.end(), 0.0F);
    const Outcome<float> early = run_fast(qkv, early_dout, 1, T, layout);
    CHECK(std::all_of(early.dqkv.begin() + changed * layout.width(), early.dqkv.end(),
                      [](float gradient) { return gradient == 0.0F; }));
  }
}

TEST_CASE("attention weights of a row add up to one") {
  for (const QkvCase& test : qkv_cases()) {
    CAPTURE(test.name);
    const int64_t T = 270;
    std::vector<float> qkv = to_float(random_qkv(1, T, test.layout, 3));
    for (int64_t t = 0; t < T; ++t) {
      std::fill_n(qkv.begin() + t * test.layout.width() + test.layout.v_offset(),
                  test.layout.n_kv_heads * test.layout.head_dim, 1.0F);
    }
    const Outcome<float> found = run_fast(qkv, to_float(random_dout(1, T, test.layout)), 1, T, test.layout);
    for (float value : found.out) {
      CHECK(std::abs(value - 1.0F) < 4e-6F);
    }
  }
}

TEST_CASE("the first token attends to itself alone: its output is its value, its query gets no gradient") {
  for (const QkvCase& test : qkv_cases()) {
    CAPTURE(test.name);
    const QkvLayout& layout = test.layout;
    const std::vector<float> qkv = to_float(random_qkv(1, 1, layout));
    const Outcome<float> found = run_fast(qkv, to_float(random_dout(1, 1, layout)), 1, 1, layout);
    for (int64_t h = 0; h < layout.n_heads; ++h) {
      for (int64_t j = 0; j < layout.head_dim; ++j) {
        const int64_t v = layout.v_offset() + h / layout.heads_per_kv() * layout.head_dim + j;
        CHECK(found.out[static_cast<size_t>(h * layout.head_dim + j)] == qkv[static_cast<size_t>(v)]);
        CHECK(std::abs(found.dqkv[static_cast<size_t>(h * layout.q_stride() + j)]) < 1e-6F);
      }
    }
  }
}

TEST_CASE("scores of ten thousand: nothing overflows, the largest key takes all the weight") {
  const QkvLayout layout = {.n_heads = 1, .n_kv_heads = 1, .head_dim = 16};
  const int64_t T = 300;
  // scale * q.k is +1e4 for the key at position 5 and -1e4 for all others.
  std::vector<float> qkv = to_float(random_qkv(1, T, layout));
  for (int64_t t = 0; t < T; ++t) {
    float* row = qkv.data() + t * layout.width();
    std::fill_n(row, 32, 0.0F);
    row[0] = 200.0F;
    row[16] = t == 5 ? 200.0F : -200.0F;
  }
  const std::vector<float> dout = to_float(random_dout(1, T, layout));
  const Outcome<float> found = run_fast(qkv, dout, 1, T, layout);
  for (float value : found.dqkv) {
    CHECK(std::isfinite(value));
  }
  for (int64_t t = 5; t < T; ++t) {
    CHECK(found.stats[static_cast<size_t>(t)] == doctest::Approx(1e4).epsilon(1e-6));
    CHECK(found.stats[static_cast<size_t>(T + t)] == 0);
    for (int64_t j = 0; j < 16; ++j) {
      CHECK(found.out[static_cast<size_t>(t * 16 + j)] == qkv[static_cast<size_t>(5 * layout.width() + 32 + j)]);
    }
  }
}

TEST_CASE("a value that is not a number is not hidden") {
  const QkvLayout layout = {.n_heads = 1, .n_kv_heads = 1, .head_dim = 16};
  const int64_t T = 80;
  std::vector<float> qkv = to_float(random_qkv(1, T, layout));
  qkv[static_cast<size_t>(70 * layout.width())] = std::nanf("");
  const Outcome<float> found = run_fast(qkv, to_float(random_dout(1, T, layout)), 1, T, layout);
  CHECK(std::isfinite(found.out[69 * 16]));
  CHECK(std::isnan(found.out[70 * 16]));
  CHECK(std::isnan(found.stats[static_cast<size_t>(T) + 70]));
}

TEST_CASE("attention's backward adds to what is there and leaves gates alone") {
  const QkvLayout layout = {.n_heads = 2, .n_kv_heads = 1, .head_dim = 16, .gated = true};
  const int64_t T = 70;
  const std::vector<float> qkv = to_float(random_qkv(1, T, layout));
  const std::vector<float> dout = to_float(random_dout(1, T, layout));
  Outcome<float> once = run_fast(qkv, dout, 1, T, layout);
  std::vector<float> dqkv(once.dqkv.size(), 0.5F);
  attention_backward(dout.data(), qkv.data(), once.out.data(), once.stats.data(), dqkv.data(), 1, T, layout, true,
                     false);
  for (size_t i = 0; i < dqkv.size(); ++i) {
    CHECK(dqkv[i] == doctest::Approx(0.5 + static_cast<double>(once.dqkv[i])).epsilon(1e-5));
  }
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t h = 0; h < layout.n_heads; ++h) {
      for (int64_t j = 0; j < layout.head_dim; ++j) {
        CHECK(dqkv[static_cast<size_t>(t * layout.width() + h * layout.q_stride() + layout.head_dim + j)] == 0.5F);
      }
    }
  }
}

TEST_CASE("attention's backward overwrites a fresh gradient, with the bits of adding to zero") {
  const QkvLayout layout = {.n_heads = 4, .n_kv_heads = 2, .head_dim = 16};
  for (int64_t T : {1, 70, 300, 600}) {
    CAPTURE(T);
    const std::vector<float> qkv = to_float(random_qkv(2, T, layout));
    const std::vector<float> dout = to_float(random_dout(2, T, layout));
    const Outcome<float> expected = run_fast(qkv, dout, 2, T, layout);
    std::vector<float> dqkv(expected.dqkv.size(), std::nanf(""));
    attention_backward(dout.data(), qkv.data(), expected.out.data(), expected.stats.data(), dqkv.data(), 2, T, layout,
                       true, true);
    CHECK(dqkv == expected.dqkv);
  }
}

TEST_CASE("where one key has all the weight, scores get no gradient, however large the keys are") {
  if (gemm_numerics() != "tiles") {
    return;  // what else multiplies may round dout . v and dout . out apart
  }
  const QkvLayout layout = {.n_heads = 1, .n_kv_heads = 1, .head_dim = 72};
  const int64_t T = 130;
  // Scores are about 10^7 apart, values are plain numbers.
  std::vector<float> qkv = to_float(random_qkv(1, T, layout));
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t j = 0; j < 2 * layout.head_dim; ++j) {
      qkv[static_cast<size_t>(t * layout.width() + j)] *= 3e3F;
    }
  }
  const Outcome<float> found = run_fast(qkv, to_float(random_dout(1, T, layout)), 1, T, layout);
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t j = 0; j < 2 * layout.head_dim; ++j) {
      REQUIRE(found.dqkv[static_cast<size_t>(t * layout.width() + j)] == 0.0F);
    }
  }
}

TEST_CASE("scores of a hundred million: weights are shared as the scores say") {
  // scale * q.k is 2^27 for two keys and half of it for all others: the two share the weight, although beside 2^27 a
  // float has no digits for log 2.
  const QkvLayout layout = {.n_heads = 1, .n_kv_heads = 1, .head_dim = 16};
  const int64_t T = 70;
  std::vector<double> qkv = random_qkv(1, T, layout);
  for (int64_t t = 0; t < T; ++t) {
    double* row = qkv.data() + t * layout.width();
    std::fill_n(row, 32, 0.0);
    row[0] = 0x1p15;
    row[16] = t == 3 || t == 5 ? 0x1p14 : 0x1p13;
  }
  const std::vector<double> dout = random_dout(1, T, layout);
  const Outcome<double> expected = run_textbook(qkv, dout, 1, T, layout);
  CHECK(relative_error(run_reference(qkv, dout, 1, T, layout).dqkv, expected.dqkv) < 1e-13);
  CHECK(relative_error(run_reference(to_float(qkv), to_float(dout), 1, T, layout).dqkv, expected.dqkv) < 1e-5);
  CHECK(relative_error(run_fast(to_float(qkv), to_float(dout), 1, T, layout).dqkv, expected.dqkv) < 1e-5);
}
