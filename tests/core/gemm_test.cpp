#include "core/kernels/gemm.h"
#include "core/kernels/gemm_panels.h"
#include "core/parallel.h"
#include "core/rng.h"
#include "core/tensor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace minillm;
using namespace minillm::kernels;

namespace {

std::vector<float> random_entries(int64_t count, uint64_t seed) {
  RandomStream stream(random_key(seed, "gemm"));
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    value = static_cast<float>(2 * stream.uniform() - 1);
  }
  return values;
}

struct Case {
  int64_t M;
  int64_t N;
  int64_t K;
  bool transpose_a;
  bool transpose_b;
  int64_t padding;  // of each leading dimension
};

struct Product {
  explicit Product(const Case& c)
      : a_ld((c.transpose_a ? c.M : c.K) + c.padding),
        b_ld((c.transpose_b ? c.K : c.N) + c.padding),
        c_ld(c.N + c.padding),
        a(random_entries((c.transpose_a ? c.K : c.M) * a_ld, 1)),
        b(random_entries((c.transpose_b ? c.N : c.K) * b_ld, 2)),
        start(random_entries(c.M * c_ld, 3)),
        A{a.data(), a_ld, c.transpose_a},
        B{b.data(), b_ld, c.transpose_b} {}

  int64_t a_ld;
  int64_t b_ld;
  int64_t c_ld;
  std::vector<float> a;
  std::vector<float> b;
  std::vector<float> start;
  Operand<float> A;
  Operand<float> B;
};

double at(const Operand<float>& X, int64_t row, int64_t column) {
  return static_cast<double>(X.transposed ? X.data[column * X.ld + row] : X.data[row * X.ld + column]);
}

/// The definition, an element at a time in double.
double element(const Product& p, const Case& c, int64_t m, int64_t n, double beta) {
  double sum = beta == 0 ? 0 : static_cast<double>(p.start[static_cast<size_t>(m * p.c_ld + n)]);
  for (int64_t k = 0; k < c.K; ++k) {
    sum += at(p.A, m, k) * at(p.B, k, n);
  }
  return sum;
}

void check_product(const Product& p, const Case& c, const std::vector<float>& got, double beta) {
  double worst = 0;
  for (int64_t m = 0; m < c.M; ++m) {
    for (int64_t n = 0; n < c.N; ++n) {
      const double difference =
          static_cast<double>(got[static_cast<size_t>(m * p.c_ld + n)]) - element(p, c, m, n, beta);
      worst = std::isnan(difference) ? HUGE_VAL : std::max(worst, std::abs(difference));
    }
    for (int64_t pad = c.N; pad < p.c_ld; ++pad) {
      const size_t i = static_cast<size_t>(m * p.c_ld + pad);
      CHECK(got[i] == p.start[i]);  // between rows nothing is written
    }
  }
  CHECK(worst < 2e-6 * std::sqrt(static_cast<double>(c.K) + 1));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& [M, N, K] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                                   {1, 5, 3},
                                                                   {7, 1, 9},
                                                                   {3, 4, 0},
                                                                   {0, 4, 3},
                                                                   {4, 0, 3},
                                                                   {64, 64, 64},
                                                                   {128, 128, 16},
                                                                   {129, 130, 65},
                                                                   {300, 17, 33},
                                                                   {31, 100, 600}}) {
    for (int flags = 0; flags < 4; ++flags) {
      all.push_back({M, N, K, (flags & 1) != 0, (flags & 2) != 0, flags == 1 || flags == 2 ? 3 : 0});
    }
  }
  return all;
}

}  // namespace

TEST_CASE("gemm, fast and reference, gives the product for every shape, transposition and beta") {
  for (const Case& c : cases()) {
    for (double beta : {0.0, 1.0}) {
      CAPTURE(c.M);
      CAPTURE(c.N);
      CAPTURE(c.K);
      CAPTURE(c.transpose_a);
      CAPTURE(c.transpose_b);
      CAPTURE(beta);
      const Product p(c);
      std::vector<float> fast = p.start;
      if (beta == 0) {  // whatever was there must not show
        for (int64_t i = 0; i < c.M * c.N; ++i) {
          fast[static_cast<size_t>(i / c.N * p.c_ld + i % c.N)] = std::numeric_limits<float>::quiet_NaN();
        }
      }
      std::vector<float> reference = fast;
      gemm(p.A, p.B, {fast.data(), p.c_ld}, c.M, c.N, c.K, beta);
      gemm_reference(p.A, p.B, {reference.data(), p.c_ld}, c.M, c.N, c.K, beta);
      check_product(p, c, fast, beta);
      check_product(p, c, reference, beta);
    }
  }
}

namespace {

/// What gemm_panels.h defines, an element at a time: a chain of fma for each chunk of K, the chunks added in order.
std::vector<float> in_chunks(const Product& p, const Case& c, double beta) {
  std::vector<float> result = p.start;
  for (int64_t m = 0; m < c.M; ++m) {
    for (int64_t n = 0; n < c.N; ++n) {
      float& sum = result[static_cast<size_t>(m * p.c_ld + n)];
      for (int64_t k = 0; k < c.K; k += panel_depth) {
        float chunk = 0;
        for (int64_t i = k; i < std::min(c.K, k + panel_depth); ++i) {
          chunk = std::fma(static_cast<float>(at(p.A, m, i)), static_cast<float>(at(p.B, i, n)), chunk);
        }
        sum = k == 0 && beta == 0 ? chunk : sum + chunk;
      }
    }
  }
  return result;
}

}  // namespace

TEST_CASE("every instruction set gives the bits that gemm_panels.h defines, in parallel and with B packed before") {
  std::vector<Case> shapes = cases();
  shapes.push_back({150, 200, 300, true, true, 1});
  shapes.push_back({5, 4200, 300, false, true, 0});  // wider than the columns packed at a time
  shapes.push_back({3, 700, 1700, true, false, 1});  // more floats than are packed at a time
  for (const Case& c : shapes) {
    for (const double beta : {0.0, 1.0}) {
      const Product p(c);
      const std::vector<float> expected = in_chunks(p, c, beta);
      for (const PanelKernel* kernel : {avx2_panels(), avx512_panels()}) {
        if (kernel == nullptr || c.K == 0) {
          continue;
        }
        CAPTURE(kernel->name);
        CAPTURE(c.M);
        CAPTURE(c.N);
        CAPTURE(c.K);
        CAPTURE(beta);
        std::vector<float> got = p.start;
        gemm_panels(*kernel, p.A, p.B, {got.data(), p.c_ld}, c.M, c.N, c.K, beta);
        CHECK(got == expected);
        got = p.start;
        const Buffer packed({packed_floats(*kernel, c.N, c.K)}, DType::float32);
        const Packed B = pack(*kernel, p.B, c.N, c.K, packed.tensor().as<float>());
        multiply_packed(*kernel, p.A, B, {got.data(), p.c_ld}, c.M, c.K, beta);
        CHECK(got == expected);
      }
    }
  }
}

TEST_CASE("a packed product is the product, whatever multiplies, also with the first rows of B alone") {
  for (const Case& whole : cases()) {
    if (whole.K == 0) {
      continue;
    }
    const Product p(whole);
    const Buffer packed({packed_floats(whole.N, whole.K)}, DType::float32);
    const Packed B = pack(p.B, whole.N, whole.K, packed.tensor().as<float>());
    for (const double beta : {0.0, 1.0}) {
      for (const int64_t K : {whole.K, std::max<int64_t>(1, whole.K - 1), (whole.K + 1) / 2}) {
        Case c = whole;
        c.K = K;
        CAPTURE(c.M);
        CAPTURE(c.N);
        CAPTURE(c.K);
        CAPTURE(whole.K);
        std::vector<float> got = p.start;
        gemm_packed(p.A, B, {got.data(), p.c_ld}, c.M, c.K, beta);
        check_product(p, c, got, beta);
      }
    }
  }
}

TEST_CASE("row products have the bits of a product's elements") {
  for (const std::array<int64_t, 2>& shape : {std::array<int64_t, 2>{1, 1}, {7, 33}, {8, 256}, {21, 600}}) {
    const int64_t rows = shape[0];
    const int64_t K = shape[1];
    const Case c = {rows, rows, K, false, true, 3};
    const Product p(c);
    const std::vector<float> all = in_chunks(p, c, 0.0);
    for (const PanelKernel* kernel : {avx2_panels(), avx512_panels()}) {
      if (kernel != nullptr) {
        CAPTURE(kernel->name);
        CAPTURE(rows);
        std::vector<float> got(static_cast<size_t>(rows));
        kernel->row_products(p.A.data, p.a_ld, p.B.data, p.b_ld, got.data(), rows, K);
        for (int64_t r = 0; r < rows; ++r) {
          CHECK(got[static_cast<size_t>(r)] == all[static_cast<size_t>(r * p.c_ld + r)]);
        }
      }
    }
    std::vector<float> found(static_cast<size_t>(rows));
    row_products(p.A, p.B, found.data(), rows, K);
    for (int64_t r = 0; r < rows; ++r) {
      CHECK(static_cast<double>(found[static_cast<size_t>(r)]) ==
            doctest::Approx(element(p, c, r, r, 0.0)).epsilon(1e-4));
    }
  }
}

TEST_CASE("a single row times whole panels has the bits of that row among others") {
  for (const PanelKernel* kernel : {avx2_panels(), avx512_panels()}) {
    for (const int64_t K : {1, 7, 256, 257, 700}) {
      for (const int64_t N : {1, 9, 200, 1030}) {
        if (kernel == nullptr) {
          continue;
        }
        CAPTURE(kernel->name);
        CAPTURE(K);
        CAPTURE(N);
        const Case c = {3, N, K, false, true, 3};
        const Product p(c);
        const int64_t width = kernel->columns;
        std::vector<float> panels(static_cast<size_t>((N + width - 1) / width * width * K));
        kernel->pack_columns(p.B, N, K, panels.data(), width * K);
        for (const double beta : {0.0, 1.0}) {
          std::vector<float> all = p.start;
          gemm_panels(*kernel, p.A, p.B, {all.data(), p.c_ld}, c.M, N, K, beta);
          std::vector<float> got = p.start;
          for (int64_t m = 0; m < c.M; ++m) {
            kernel->multiply_row(p.a.data() + m * p.a_ld, panels.data(), N, K, got.data() + m * p.c_ld, beta != 0);
          }
          CHECK(got == all);
        }
      }
    }
  }
}

TEST_CASE("gemm gives the same bits for 1, 2, 3 and 4 threads") {
  for (const Case& c : {Case{300, 260, 700, false, true, 0}, Case{256, 256, 1024, true, false, 0},
                        Case{1, 2048, 256, false, true, 0}}) {
    const Product p(c);
    std::vector<float> first;
    for (int threads : {1, 2, 3, 4}) {
      CAPTURE(threads);
      set_num_threads(threads);
      std::vector<float> got = p.start;
      gemm(p.A, p.B, {got.data(), p.c_ld}, c.M, c.N, c.K, 1.0);
      if (first.empty()) {
        first = got;
      }
      CHECK(got == first);
    }
  }
  set_num_threads(2);
}

TEST_CASE("gemm_batched has each product's bits, beside each other or one by one; stride 0 uses one operand for all") {
  constexpr int64_t count = 5;
  for (const std::array<int64_t, 3>& size : {std::array<int64_t, 3>{130, 9, 17}, {200, 130, 300}}) {
    const auto [M, N, K] = size;
    const std::vector<float> a = random_entries(count * M * K, 1);
    const std::vector<float> b = random_entries(count * K * N, 2);
    for (const bool transposed : {false, true}) {
      for (const int64_t b_stride : {int64_t{0}, K * N}) {
        const Operand<float> A = {a.data(), transposed ? M : K, transposed};
        const Operand<float> B = {b.data(), transposed ? K : N, transposed};
        std::vector<float> got(static_cast<size_t>(count * M * N));
        std::vector<float> want = got;
        gemm_batched(A, B, {got.data(), N}, M, N, K, 0.0, count, {M * K, b_stride, M * N});
        for (int64_t i = 0; i < count; ++i) {
          gemm({A.data + i * M * K, A.ld, transposed}, {B.data + i * b_stride, B.ld, transposed},
               {want.data() + i * M * N, N}, M, N, K, 0.0);
        }
        CHECK(got == want);
      }
    }
  }
}
