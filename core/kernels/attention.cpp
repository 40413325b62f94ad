#include "core/kernels/attention.h"

#include "core/kernels/exp.h"
#include "core/kernels/gemm.h"
#include "core/kernels/simd.h"
#include "core/parallel.h"
#include "core/workspace.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace minillm::kernels {

namespace {

// Scores are kept transposed, a row a key and a column a query: keys and values are then read where they lie, only the
// query's side of a product is packed, once for all its keys, and the loops over scores run along the queries, each in
// its own lane. A block of scores is key_block x query_block and stays in L2.
constexpr int64_t query_block = 64;
constexpr int64_t key_block = 256;
constexpr int64_t score_ld = query_block + lanes;  // no power of two: keys do not fall on the same cache lines
constexpr int64_t chunk = 32;                      // queries that a loop holds in registers
constexpr float infinity = std::numeric_limits<float>::infinity();
static_assert(query_block % chunk == 0);

// Of a block of scores; columns behind the last query hold anything, and no product reads them.
constexpr int64_t score_floats = key_block * score_ld;

/// Queries [q0, q0 + rows) of T. Together they see keys [0, keys).
struct Queries {
  int64_t q0;
  int64_t rows;
  int64_t keys;
  bool causal;
};

int64_t query_blocks(int64_t T) {
  return (T + query_block - 1) / query_block;
}

Queries queries_at(int64_t i, int64_t T, bool causal) {
  const int64_t q0 = i * query_block;
  const int64_t rows = std::min(query_block, T - q0);
  return {q0, rows, causal ? q0 + rows : T, causal};
}

/// `rows` queries against a block of `keys` keys. Key u of the block is seen by query r when u <= seen_from + r.
struct Block {
  int64_t rows;
  int64_t keys;
  int64_t seen_from;
};

/// The block of keys from k0 on.
Block block_at(const Queries& queries, int64_t k0) {
  const int64_t keys = std::min(key_block, queries.keys - k0);
  return {queries.rows, keys, queries.causal ? queries.q0 - k0 : keys};
}

/// -infinity where a query of columns [c, c + chunk) does not see the key: exp makes that exactly zero.
inline void mask_chunk(float* scores, const Block& block, int64_t c) {
  for (int64_t u = std::max<int64_t>(0, block.seen_from + c + 1); u < block.keys; ++u) {
    const int64_t hidden = std::min(chunk, u - block.seen_from - c);
    for (int64_t i = 0; i < hidden; ++i) {
      scores[u * score_ld + c + i] = -infinity;
    }
  }
}

/// What each query knows after a block of keys: the largest score so far, the sum of exp(score - largest), and the
/// factor by which the new largest score shrinks what was summed before.
struct alignas(64) RunningQueries {
  float largest[query_block];
  float sum[query_block];
  float shrink[query_block];
};

/// Turns products q.k into exp(score - largest) and brings the running queries up to date.
MINILLM_SIMD void softmax_block(float* scores, const Block& block, float scale, RunningQueries& running) {
  for (int64_t c = 0; c < block.rows; c += chunk) {
    mask_chunk(scores, block, c);
    float largest[chunk];
    std::fill_n(largest, chunk, -infinity);
    for (int64_t u = 0; u < block.keys; ++u) {
      const float* s = scores + u * score_ld + c;
      for (int64_t i = 0; i < chunk; ++i) {
        largest[i] = s[i] > largest[i] ? s[i] : largest[i];
      }
    }
    float sum[chunk] = {};
    for (int64_t i = 0; i < chunk; ++i) {
      const float before = running.largest[c + i];
      const float now = scale * largest[i] > before ? scale * largest[i] : before;
      running.shrink[c + i] = fast_exp(before - now);
      running.largest[c + i] = now;
      largest[i] = now;
    }
    for (int64_t u = 0; u < block.keys; ++u) {
      float* s = scores + u * score_ld + c;
      for (int64_t i = 0; i < chunk; ++i) {
        const float e = fast_exp(scale * s[i] - largest[i]);
        s[i] = e;
        sum[i] += e;
      }
    }
    for (int64_t i = 0; i < chunk; ++i) {
      running.sum[c + i] = running.sum[c + i] * running.shrink[c + i] + sum[i];
    }
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
  int64_t stats;
};

Offsets offsets_of(int64_t b, int64_t h, int64_t T, const QkvLayout& layout) {
  const int64_t row = b * T * layout.width();
  const int64_t kv_column = h / layout.heads_per_kv() * layout.head_dim;
  return {.q = row + h * layout.q_stride(),
          .k = row + layout.k_offset() + kv_column,
          .v = row + layout.v_offset() + kv_column,
          .out = (b * T * layout.n_heads + h) * layout.head_dim,
          .stats = (b * layout.n_heads + h) * 2 * T};
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

/// The keys or values of a head, packed block by block: the right operand of products that sum over keys.
class PackedKeys {
 public:
  /// x [T, head_dim], `width` apart, in the memory of `workspace`.
  PackedKeys(Workspace& workspace, const float* x, int64_t width, int64_t T, int64_t head_dim)
      : T_(T), head_dim_(head_dim), block_floats_(packed_floats(head_dim, key_block)) {
    const int64_t blocks = (T + key_block - 1) / key_block;
    memory_ = workspace.take(blocks * block_floats_);
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t k0 = i * key_block;
      pack({x + k0 * width, width, false}, head_dim, std::min(key_block, T - k0), memory_ + i * block_floats_);
    }
  }

  /// From key k0 on, a multiple of key_block.
  Packed from(int64_t k0) const {
    return {memory_ + k0 / key_block * block_floats_, head_dim_, std::min(key_block, T_ - k0)};
  }

 private:
  int64_t T_;
  int64_t head_dim_;
  int64_t block_floats_;
  float* memory_ = nullptr;
};

/// A head's saved numbers, by query.
template <class Float>
struct Stats {
  Float* largest;
  Float* log_sum;
};

/// Outputs and stats of some queries; out and stats start at the head's first query.
void forward_block(const Head& head, const PackedKeys& values, float* out, Stats<float> stats, float* scores,
                   const Queries& queries) {
  thread_local Workspace memory;
  const int64_t q0 = queries.q0;
  const int64_t rows = queries.rows;
  const int64_t head_dim = head.head_dim;
  const Operand<float> Q = {head.q + q0 * head.width, head.width, true};
  const Packed Q_transposed = pack(Q, rows, head_dim, memory.take(packed_floats(rows, head_dim)));
  RunningQueries running;
  std::fill_n(running.largest, query_block, -infinity);
  std::fill_n(running.sum, query_block, 0.0F);
  const Result<float> O = {out + q0 * head.out_ld, head.out_ld};
  for (int64_t k0 = 0; k0 < queries.keys; k0 += key_block) {
    const Block block = block_at(queries, k0);
    const Operand<float> K = {head.k + k0 * head.width, head.width, false};
    gemm_packed(K, Q_transposed, {scores, score_ld}, block.keys, head_dim, 0.0);
    softmax_block(scores, block, head.scale, running);
    if (k0 > 0) {
      multiply_rows(O.data, head.out_ld, running.shrink, rows, head_dim);
    }
    gemm_packed({scores, score_ld, true}, values.from(k0), O, rows, block.keys, k0 == 0 ? 0.0 : 1.0);
  }
  float inverse_sum[query_block];
  for (int64_t r = 0; r < rows; ++r) {
    inverse_sum[r] = 1.0F / running.sum[r];
    stats.largest[q0 + r] = running.largest[r];
    stats.log_sum[q0 + r] = std::log(running.sum[r]);
  }
  multiply_rows(O.data, head.out_ld, inverse_sum, rows, head_dim);
}

}  // namespace

void attention_forward(const float* qkv, float* out, float* stats, int64_t B, int64_t T, const QkvLayout& layout,
                       bool causal) {
  // A task packs its values once. More than one a key head only where the heads would not keep the threads busy: a
  // block of queries is the same in any task.
  const int64_t kv_heads = B * layout.n_kv_heads;
  const int64_t blocks = query_blocks(T);
  const int64_t parts = std::clamp<int64_t>((4 * num_threads() + kv_heads - 1) / std::max<int64_t>(kv_heads, 1), 1,
                                            std::max<int64_t>(blocks, 1));
  parallel_for(kv_heads * parts, 1, [=, &layout](int64_t task, int64_t) {
    thread_local Workspace memory;
    const int64_t b = task / parts / layout.n_kv_heads;
    const int64_t first_head = task / parts % layout.n_kv_heads * layout.heads_per_kv();
    const Head any = head_at(qkv, offsets_of(b, first_head, T, layout), layout);
    const PackedKeys values(memory, any.v, any.width, T, any.head_dim);
    thread_local Workspace score_memory;
    float* scores = score_memory.take(score_floats);
    for (int64_t h = first_head; h < first_head + layout.heads_per_kv(); ++h) {
      const Offsets at = offsets_of(b, h, T, layout);
      for (int64_t i = task % parts; i < blocks; i += parts) {
        forward_block(head_at(qkv, at, layout), values, out + at.out, {stats + at.stats, stats + at.stats + T}, scores,
                      queries_at(i, T, causal));
      }
    }
  });
}

namespace {

/// Products q.k -> probabilities, hidden ones exactly zero.
MINILLM_SIMD void probabilities_block(float* scores, const Block& block, float scale, const Stats<const float>& stats) {
  for (int64_t c = 0; c < block.rows; c += chunk) {
    mask_chunk(scores, block, c);
    for (int64_t u = 0; u < block.keys; ++u) {
      float* s = scores + u * score_ld + c;
      for (int64_t i = 0; i < chunk; ++i) {
        s[i] = fast_exp(scale * s[i] - stats.largest[c + i] - stats.log_sum[c + i]);
      }
    }
  }
}

/// dp -> scale * p * (dp - D), in place.
MINILLM_SIMD void dscores_block(const float* p, float* dp, const Block& block, float scale, const float* D) {
  for (int64_t u = 0; u < block.keys; ++u) {
    const float* p_u = p + u * score_ld;
    float* dp_u = dp + u * score_ld;
    for (int64_t r = 0; r < query_block; ++r) {
      dp_u[r] = scale * p_u[r] * (dp_u[r] - D[r]);
    }
  }
}

/// What backward reads and writes beside a head's q, k and v; dq, dk, dv lie as q, k, v do.
struct HeadGradients {
  const float* dout;
  const float* out;
  Stats<const float> stats;
  float* dq;
  float* dk;
  float* dv;
};

/// The queries' side of backward's products: one block of queries and of dout, each both ways round.
struct PackedQueries {
  Packed Q;
  Packed Q_transposed;
  Packed dO;
  Packed dO_transposed;
};

PackedQueries pack_queries(const Operand<float>& Q, const Operand<float>& dO, int64_t rows, int64_t head_dim) {
  thread_local Workspace memory;
  const int64_t down = packed_floats(head_dim, rows);
  const int64_t across = packed_floats(rows, head_dim);
  float* at = memory.take(2 * (down + across));
  return {.Q = pack(Q, head_dim, rows, at),
          .Q_transposed = pack({Q.data, Q.ld, true}, rows, head_dim, at + down),
          .dO = pack(dO, head_dim, rows, at + down + across),
          .dO_transposed = pack({dO.data, dO.ld, true}, rows, head_dim, at + 2 * down + across)};
}

// The formulas are derived in attention_reference.cpp. `fresh`: dk and dv hold nothing yet, `fresh_dq`: nor does dq.
void backward_block(const Head& head, const PackedKeys& keys, const HeadGradients& gradients, float* p, float* ds,
                    const Queries& queries, bool fresh, bool fresh_dq) {
  const int64_t q0 = queries.q0;
  const int64_t rows = queries.rows;
  const int64_t head_dim = head.head_dim;
  const int64_t width = head.width;
  alignas(64) float D[query_block] = {};
  alignas(64) float largest[query_block] = {};
  alignas(64) float log_sum[query_block] = {};
  const float* dout = gradients.dout + q0 * head.out_ld;
  // Rounded as dp = dout . v is: where one key has all the weight, out is its v and dp - D exactly zero. What large
  // keys would make of a difference in rounding would drown the gradient.
  row_products({dout, head.out_ld, false}, {gradients.out + q0 * head.out_ld, head.out_ld, false}, D, rows, head_dim);
  std::copy_n(gradients.stats.largest + q0, rows, largest);
  std::copy_n(gradients.stats.log_sum + q0, rows, log_sum);
  const PackedQueries packed =
      pack_queries({head.q + q0 * width, width, false}, {dout, head.out_ld, false}, rows, head_dim);
  const Operand<float> P = {p, score_ld, false};
  const Operand<float> dS = {ds, score_ld, false};
  const double beta = fresh ? 0.0 : 1.0;
  for (int64_t k0 = 0; k0 < queries.keys; k0 += key_block) {
    const Block block = block_at(queries, k0);
    const Operand<float> K = {head.k + k0 * width, width, false};
    const Operand<float> V = {head.v + k0 * width, width, false};
    gemm_packed(K, packed.Q_transposed, {p, score_ld}, block.keys, head_dim, 0.0);
    probabilities_block(p, block, head.scale, {largest, log_sum});
    gemm_packed(P, packed.dO, {gradients.dv + k0 * width, width}, block.keys, rows, beta);
    gemm_packed(V, packed.dO_transposed, {ds, score_ld}, block.keys, head_dim, 0.0);
    dscores_block(p, ds, block, head.scale, D);
    gemm_packed(dS, packed.Q, {gradients.dk + k0 * width, width}, block.keys, rows, beta);
    gemm_packed({ds, score_ld, true}, keys.from(k0), {gradients.dq + q0 * width, width}, rows, block.keys,
                k0 == 0 && fresh_dq ? 0.0 : 1.0);
  }
}

}  // namespace

void attention_backward(const float* dout, const float* qkv, const float* out, const float* stats, float* dqkv,
                        int64_t B, int64_t T, const QkvLayout& layout, bool causal, bool fresh) {
  const int64_t blocks = query_blocks(T);
  parallel_for(B * layout.n_kv_heads, 1, [=, &layout](int64_t task, int64_t) {
    thread_local Workspace memory;
    const int64_t b = task / layout.n_kv_heads;
    const int64_t first_head = task % layout.n_kv_heads * layout.heads_per_kv();
    const Head any = head_at(qkv, offsets_of(b, first_head, T, layout), layout);
    const PackedKeys keys(memory, any.k, any.width, T, any.head_dim);
    thread_local Workspace score_memory;
    float* p = score_memory.take(2 * score_floats);
    float* ds = p + score_floats;
    for (int64_t h = first_head; h < first_head + layout.heads_per_kv(); ++h) {
      const Offsets at = offsets_of(b, h, T, layout);
      const HeadGradients gradients = {.dout = dout + at.out,
                                       .out = out + at.out,
                                       .stats = {stats + at.stats, stats + at.stats + T},
                                       .dq = dqkv + at.q,
                                       .dk = dqkv + at.k,
                                       .dv = dqkv + at.v};
      // The last queries first: they see every key, so all of dk and dv is written before anything is added.
      for (int64_t i = blocks - 1; i >= 0; --i) {
        backward_block(head_at(qkv, at, layout), keys, gradients, p, ds, queries_at(i, T, causal),
                       fresh && h == first_head && i == blocks - 1, fresh);
      }
    }
  });
}

}  // namespace minillm::kernels
