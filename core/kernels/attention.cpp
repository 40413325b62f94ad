#include "core/kernels/attention.h"

#include "core/kernels/exp.h"
#include "core/kernels/gemm.h"
#include "core/kernels/simd.h"
#include "core/parallel.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace minillm::kernels {

namespace {

// A block of scores is query_block x key_block: 64 KiB, which stays in L2 beside the keys and values it was made from.
// A key block is a multiple of the query block, so only a query block's last key block holds the diagonal.
constexpr int64_t query_block = 64;
constexpr int64_t key_block = 256;
constexpr int64_t score_ld = key_block + lanes;  // no power of two: rows do not fall on the same cache lines
constexpr float infinity = std::numeric_limits<float>::infinity();
static_assert(key_block % query_block == 0 && key_block % lanes == 0);

/// One block of scores on its task's stack.
struct alignas(64) Scores {
  float at[query_block * score_ld];
};

/// Queries [q0, q0 + rows) against keys [k0, k0 + keys). Row r sees `first + r` of the keys, at most all of them.
struct Block {
  int64_t q0;
  int64_t rows;
  int64_t k0;
  int64_t keys;

  int64_t first() const { return q0 + 1 - k0; }
};

/// The block of keys from k0 on that queries [q0, q0 + rows) may see.
Block block_at(int64_t q0, int64_t rows, int64_t k0) {
  return {q0, rows, k0, std::min(key_block, q0 + rows - k0)};
}

/// Keys row r sees, and that number rounded up to whole lanes. What lies between is made -infinity, what lies behind
/// zero: loops over scores then need no remainder, and masked keys get exactly no weight.
struct Visible {
  int64_t keys;
  int64_t padded;
};

inline Visible visible(const Block& block, int64_t r) {
  const int64_t keys = std::min(block.keys, block.first() + r);
  return {keys, (keys + lanes - 1) / lanes * lanes};
}

inline void mask_row(float* s, const Visible& row, int64_t keys) {
  for (int64_t u = row.keys; u < row.padded; ++u) {
    s[u] = -infinity;
  }
  for (int64_t u = row.padded; u < keys; ++u) {
    s[u] = 0.0F;
  }
}

/// s = exp(scale * s - shift); returns the sum.
inline float exp_row(float* s, float scale, float shift, int64_t count) {
  float partial[lanes] = {};
  for (int64_t u = 0; u < count; u += lanes) {
    for (int lane = 0; lane < lanes; ++lane) {
      const float e = fast_exp(scale * s[u + lane] - shift);
      s[u + lane] = e;
      partial[lane] += e;
    }
  }
  return sum_lanes(partial);
}

/// What a row of queries knows after each key block: the largest score so far, the sum of exp(score - largest), and the
/// factor by which the new largest score shrinks what was summed before.
struct RunningRows {
  float largest[query_block];
  float sum[query_block];
  float shrink[query_block];
};

/// Turns raw products q.k into exp(score - largest) and brings the running rows up to date.
MINILLM_SIMD void softmax_block(float* scores, const Block& block, float scale, RunningRows& rows) {
  for (int64_t r = 0; r < block.rows; ++r) {
    float* s = scores + r * score_ld;
    const Visible row = visible(block, r);
    mask_row(s, row, block.keys);
    const float block_largest = scale * largest_in_lanes(s, row.padded);
    const float largest = block_largest > rows.largest[r] ? block_largest : rows.largest[r];
    const float sum = exp_row(s, scale, largest, row.padded);
    rows.shrink[r] = fast_exp(rows.largest[r] - largest);
    rows.sum[r] = rows.sum[r] * rows.shrink[r] + sum;
    rows.largest[r] = largest;
  }
}

MINILLM_SIMD void multiply_rows(float* x, int64_t ld, const float* factor, int64_t rows, int64_t head_dim) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < head_dim; ++j) {
      x[r * ld + j] *= factor[r];
    }
  }
}

/// One head of one sequence: queries, keys and values a row's width apart, outputs out_ld apart.
struct Head {
  const float* q;
  const float* k;
  const float* v;
  int64_t width;
  int64_t out_ld;
  int64_t head_dim;
  float scale;
};

/// Where things of head h of sequence b start in their tensors.
struct Offsets {
  int64_t q;
  int64_t k;
  int64_t v;
  int64_t out;
  int64_t lse;
};

Offsets offsets_of(int64_t b, int64_t h, int64_t T, const QkvLayout& layout) {
  const int64_t row = b * T * layout.width();
  const int64_t kv_column = h / layout.heads_per_kv() * layout.head_dim;
  return {.q = row + h * layout.q_stride(),
          .k = row + layout.k_offset() + kv_column,
          .v = row + layout.v_offset() + kv_column,
          .out = (b * T * layout.n_heads + h) * layout.head_dim,
          .lse = (b * layout.n_heads + h) * T};
}

Head head_at(const float* qkv, const Offsets& at, const QkvLayout& layout) {
  return {.q = qkv + at.q,
          .k = qkv + at.k,
          .v = qkv + at.v,
          .width = layout.width(),
          .out_ld = layout.n_heads * layout.head_dim,
          .head_dim = layout.head_dim,
          .scale = 1.0F / std::sqrt(static_cast<float>(layout.head_dim))};
}

/// Outputs and log sums of queries [q0, q0 + rows); out and lse start at the head's first query.
void forward_block(const Head& head, float* out, float* lse, int64_t q0, int64_t rows) {
  const int64_t head_dim = head.head_dim;
  Scores scores;
  RunningRows running;
  std::fill_n(running.largest, rows, -infinity);
  std::fill_n(running.sum, rows, 0.0F);
  const Operand<float> Q = {head.q + q0 * head.width, head.width, false};
  const Result<float> S = {scores.at, score_ld};
  const Result<float> O = {out + q0 * head.out_ld, head.out_ld};
  for (int64_t k0 = 0; k0 < q0 + rows; k0 += key_block) {
    const Block block = block_at(q0, rows, k0);
    const Operand<float> K_transposed = {head.k + k0 * head.width, head.width, true};
    const Operand<float> V = {head.v + k0 * head.width, head.width, false};
    gemm_one_thread(Q, K_transposed, S, rows, block.keys, head_dim, 0.0);
    softmax_block(scores.at, block, head.scale, running);
    if (k0 > 0) {
      multiply_rows(O.data, head.out_ld, running.shrink, rows, head_dim);
    }
    gemm_one_thread({scores.at, score_ld, false}, V, O, rows, head_dim, block.keys, k0 == 0 ? 0.0 : 1.0);
  }
  float inverse_sum[query_block];
  for (int64_t r = 0; r < rows; ++r) {
    inverse_sum[r] = 1.0F / running.sum[r];
    lse[q0 + r] = running.largest[r] + std::log(running.sum[r]);
  }
  multiply_rows(O.data, head.out_ld, inverse_sum, rows, head_dim);
}

}  // namespace

void attention_forward(const float* qkv, float* out, float* lse, int64_t B, int64_t T, const QkvLayout& layout) {
  const int64_t blocks = (T + query_block - 1) / query_block;
  parallel_for(B * layout.n_heads * blocks, 1, [=, &layout](int64_t task, int64_t) {
    const int64_t b = task / blocks / layout.n_heads;
    const int64_t h = task / blocks % layout.n_heads;
    const int64_t q0 = (blocks - 1 - task % blocks) * query_block;  // the longest rows first
    const Offsets at = offsets_of(b, h, T, layout);
    forward_block(head_at(qkv, at, layout), out + at.out, lse + at.lse, q0, std::min(query_block, T - q0));
  });
}

namespace {

/// D = dout . out, row by row.
MINILLM_SIMD void row_dots(const float* dout, const float* out, int64_t ld, float* D, int64_t rows, int64_t head_dim) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* dout_r = dout + r * ld;
    const float* out_r = out + r * ld;
    D[r] = sum_in_lanes(head_dim, [=](int64_t j) { return dout_r[j] * out_r[j]; });
  }
}

/// Raw products q.k -> probabilities, masked ones exactly zero.
MINILLM_SIMD void probabilities_block(float* scores, const Block& block, float scale, const float* lse) {
  for (int64_t r = 0; r < block.rows; ++r) {
    float* s = scores + r * score_ld;
    const Visible row = visible(block, r);
    mask_row(s, row, block.keys);
    exp_row(s, scale, lse[r], row.padded);
  }
}

/// dp -> scale * p * (dp - D), in place.
MINILLM_SIMD void dscores_block(const float* p, float* dp, const Block& block, float scale, const float* D) {
  for (int64_t r = 0; r < block.rows; ++r) {
    const float* p_r = p + r * score_ld;
    float* dp_r = dp + r * score_ld;
    for (int64_t u = 0; u < block.keys; ++u) {
      dp_r[u] = scale * p_r[u] * (dp_r[u] - D[r]);
    }
  }
}

/// What backward reads and writes beside a head's q, k and v; dq, dk, dv lie as q, k, v do.
struct HeadGradients {
  const float* dout;
  const float* out;
  const float* lse;
  float* dq;
  float* dk;
  float* dv;
};

// The formulas are derived in attention_reference.cpp.
void backward_block(const Head& head, const HeadGradients& gradients, int64_t q0, int64_t rows) {
  const int64_t head_dim = head.head_dim;
  const int64_t width = head.width;
  Scores p;
  Scores ds;
  float D[query_block];
  const float* dout = gradients.dout + q0 * head.out_ld;
  row_dots(dout, gradients.out + q0 * head.out_ld, head.out_ld, D, rows, head_dim);
  const Operand<float> Q = {head.q + q0 * width, width, false};
  const Operand<float> dO = {dout, head.out_ld, false};
  const Operand<float> P_transposed = {p.at, score_ld, true};
  const Operand<float> dS = {ds.at, score_ld, false};
  const Operand<float> dS_transposed = {ds.at, score_ld, true};
  const Result<float> dQ = {gradients.dq + q0 * width, width};
  for (int64_t k0 = 0; k0 < q0 + rows; k0 += key_block) {
    const Block block = block_at(q0, rows, k0);
    const Operand<float> K = {head.k + k0 * width, width, false};
    const Operand<float> K_transposed = {K.data, width, true};
    const Operand<float> V_transposed = {head.v + k0 * width, width, true};
    const Result<float> dK = {gradients.dk + k0 * width, width};
    const Result<float> dV = {gradients.dv + k0 * width, width};
    gemm_one_thread(Q, K_transposed, {p.at, score_ld}, rows, block.keys, head_dim, 0.0);
    probabilities_block(p.at, block, head.scale, gradients.lse + q0);
    gemm_one_thread(P_transposed, dO, dV, block.keys, head_dim, rows, 1.0);
    gemm_one_thread(dO, V_transposed, {ds.at, score_ld}, rows, block.keys, head_dim, 0.0);
    dscores_block(p.at, ds.at, block, head.scale, D);
    gemm_one_thread(dS, K, dQ, rows, head_dim, block.keys, 1.0);
    gemm_one_thread(dS_transposed, Q, dK, block.keys, head_dim, rows, 1.0);
  }
}

}  // namespace

void attention_backward(const float* dout, const float* qkv, const float* out, const float* lse, float* dqkv, int64_t B,
                        int64_t T, const QkvLayout& layout) {
  const int64_t group = layout.heads_per_kv();
  parallel_for(B * layout.n_kv_heads, 1, [=, &layout](int64_t task, int64_t) {
    const int64_t b = task / layout.n_kv_heads;
    const int64_t kv_head = task % layout.n_kv_heads;
    for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      const Offsets at = offsets_of(b, h, T, layout);
      const HeadGradients gradients = {.dout = dout + at.out,
                                       .out = out + at.out,
                                       .lse = lse + at.lse,
                                       .dq = dqkv + at.q,
                                       .dk = dqkv + at.k,
                                       .dv = dqkv + at.v};
      for (int64_t q0 = 0; q0 < T; q0 += query_block) {
        backward_block(head_at(qkv, at, layout), gradients, q0, std::min(query_block, T - q0));
      }
    }
  });
}

}  // namespace minillm::kernels
