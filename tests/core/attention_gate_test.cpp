#include "core/kernels/attention_gate.h"

#include "tests/core/qkv_support.h"

#include <doctest/doctest.h>

using namespace minillm;
using namespace minillm::kernels;

namespace {

const QkvLayout gated_layout = {.n_heads = 3, .n_kv_heads = 1, .head_dim = 20, .gated = true};

size_t gate_index(int64_t r, int64_t h, int64_t j) {
  return static_cast<size_t>(r * gated_layout.width() + h * 2 * gated_layout.head_dim + gated_layout.head_dim + j);
}

}  // namespace

TEST_CASE("the gate multiplies each head's output by the sigmoid of its own slice") {
  const int64_t R = 4;
  const int64_t d = gated_layout.n_heads * gated_layout.head_dim;
  const std::vector<double> a = random_values(R * d, "a");
  const std::vector<double> dy = random_values(R * d, "dy");
  const std::vector<double> qkv = random_values(R * gated_layout.width(), "qkv", 3);
  std::vector<double> y(a.size());
  std::vector<double> da(a.size());
  std::vector<double> dqkv(qkv.size());
  attention_gate_forward_reference(a.data(), qkv.data(), y.data(), R, gated_layout);
  attention_gate_backward_reference(dy.data(), a.data(), qkv.data(), da.data(), dqkv.data(), R, gated_layout);
  std::vector<double> expected_dqkv(qkv.size());
  for (int64_t r = 0; r < R; ++r) {
    for (int64_t h = 0; h < gated_layout.n_heads; ++h) {
      for (int64_t j = 0; j < gated_layout.head_dim; ++j) {
        const size_t i = static_cast<size_t>(r * d + h * gated_layout.head_dim + j);
        const double half = qkv[gate_index(r, h, j)] / 2;  // sigmoid(g) = (1 + tanh(g / 2)) / 2
        CHECK(y[i] == doctest::Approx(a[i] * (1 + std::tanh(half)) / 2).epsilon(1e-12));
        CHECK(da[i] == doctest::Approx(dy[i] * (1 + std::tanh(half)) / 2).epsilon(1e-12));
        expected_dqkv[gate_index(r, h, j)] = dy[i] * a[i] / (4 * std::cosh(half) * std::cosh(half));
      }
    }
  }
  CHECK(relative_error(dqkv, expected_dqkv) < 1e-13);
}

TEST_CASE("fast attention_gate is the reference's, with the same bits for any number of threads") {
  const int64_t R = 70;
  const int64_t d = gated_layout.n_heads * gated_layout.head_dim;
  const std::vector<double> a = rounded(random_values(R * d, "a"));
  const std::vector<double> dy = rounded(random_values(R * d, "dy"));
  std::vector<double> qkv = rounded(random_values(R * gated_layout.width(), "qkv", 3));
  qkv[gate_index(1, 1, 1)] = 1e4;
  qkv[gate_index(2, 2, 2)] = -1e4;
  std::vector<double> y(a.size());
  std::vector<double> da(a.size());
  std::vector<double> dqkv(qkv.size());
  attention_gate_forward_reference(a.data(), qkv.data(), y.data(), R, gated_layout);
  attention_gate_backward_reference(dy.data(), a.data(), qkv.data(), da.data(), dqkv.data(), R, gated_layout);
  std::vector<float> first_y;
  std::vector<float> first_dqkv;
  for (int count : {1, 2, 3, 4}) {
    Threads threads(count);
    const std::vector<float> qkv_float = to_float(qkv);
    const std::vector<float> a_float = to_float(a);
    const std::vector<float> dy_float = to_float(dy);
    std::vector<float> fast_y(a.size());
    std::vector<float> fast_da(a.size());
    std::vector<float> fast_dqkv(qkv.size());
    attention_gate_forward(a_float.data(), qkv_float.data(), fast_y.data(), R, gated_layout);
    attention_gate_backward(dy_float.data(), a_float.data(), qkv_float.data(), fast_da.data(), fast_dqkv.data(), R,
                            gated_layout);
    CHECK(relative_error(fast_y, y) < 1e-6);
    CHECK(relative_error(fast_da, da) < 1e-6);
    CHECK(relative_error(fast_dqkv, dqkv) < 1e-6);
    if (count == 1) {
      first_y = fast_y;
      first_dqkv = fast_dqkv;
    }
    CHECK(fast_y == first_y);
    CHECK(fast_dqkv == first_dqkv);
  }
}
