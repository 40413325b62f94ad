// Multi-head latent attention (DeepSeek-V2 2024): keys and values of all heads come from one low-rank latent, which is
// what a decoder would cache. With a gate before o_proj it is Kimi K3's gated MLA.

#include "core/kernels/rope.h"
#include "nn/attention.h"
#include "nn/head_gate.h"
#include "nn/kept_rows.h"
#include "nn/norm.h"
#include "nn/qk_clip.h"

#include <cmath>
#include <vector>

namespace minillm {

namespace {

/// Of a head: `rotated` elements that carry positions, their key shared by all heads, and `plain` ones; head_dim
/// together, and head_dim wide values.
struct MlaSizes {
  int64_t heads;
  int64_t head_dim;
  int64_t rotated;
  int64_t plain;
};

MlaSizes sizes_of(const ModelConfig& config) {
  const bool rotates = config.position == "rope";
  const int64_t rotated = rotates ? 2 * kernels::rope_pairs(config.rope_fraction, config.head_dim) : 0;
  return {config.n_heads, config.head_dim, rotated, config.head_dim - rotated};
}

/// [B, T, width] -> [B, T, heads, width / heads]
Var by_head(Var x, int64_t heads) {
  const Shape& shape = x.shape();
  return reshape(x, {shape[0], shape[1], heads, shape[2] / heads});
}

/// c = N(x W_kv_a)[latent], k and v of each head = c W_kv_b, the rotated part of k straight from x. Queries likewise
/// through a latent of q_rank, or straight when it is 0.
class LatentAttention final : public Sublayer {
 public:
  LatentAttention(const ModelConfig& config, const Scope& scope, const RopeTable& rope)
      : Sublayer(scope),
        sizes_(sizes_of(config)),
        causal_(config.causal),
        kv_rank_(config.mla_kv_rank),
        rope_(rope),
        kv_a_(scope / "kv_a_proj", config.d_model, config.mla_kv_rank + sizes_.rotated, matrix_init(), config.bias),
        kv_a_norm_(make_norm(config, scope / "kv_a_layernorm", config.mla_kv_rank)),
        kv_b_(scope / "kv_b_proj", config.mla_kv_rank, sizes_.heads * (sizes_.plain + sizes_.head_dim), matrix_init(),
              false),
        out_(scope / "o_proj", sizes_.heads * sizes_.head_dim, config.d_model, residual_out_init(config), config.bias) {
    const int64_t q_width = sizes_.heads * sizes_.head_dim;
    if (config.mla_q_rank > 0) {
      q_a_ =
          std::make_unique<Linear>(scope / "q_a_proj", config.d_model, config.mla_q_rank, matrix_init(), config.bias);
      q_a_norm_ = make_norm(config, scope / "q_a_layernorm", config.mla_q_rank);
      q_ = std::make_unique<Linear>(scope / "q_b_proj", config.mla_q_rank, q_width, matrix_init(), false);
    } else {
      q_ = std::make_unique<Linear>(scope / "q_proj", config.d_model, q_width, matrix_init(), config.bias);
    }
    if (config.attention_gate != "none") {
      gate_ = std::make_unique<HeadGate>(config, scope, sizes_.heads, sizes_.head_dim);
    }
    if (config.qk_clip > 0) {
      clip_ = std::make_unique<QkClip>(config.qk_clip, scope.store(), sizes_.heads, sizes_.heads, score_rows());
    }
  }

  Var forward(Var x) const override {
    const auto scope = x.tape().enter(path());
    Var q = q_->forward(q_a_ != nullptr ? q_a_norm_->forward(q_a_->forward(x)) : x);
    Var latent = kv_a_.forward(x);                                // [B, T, kv_rank + rotated]
    Var c = kv_a_norm_->forward(slice(latent, -1, 0, kv_rank_));  // [B, T, kv_rank]
    Var attended = x.tape().reads_on() ? attend_behind_pasts(q, latent, c) : attend(q, latent, c);
    return out_.forward(gate_ != nullptr ? gate_->forward(attended, x) : attended);
  }

 private:
  Var attend(Var q, Var latent, Var c) const {
    const QkvLayout layout = {sizes_.heads, sizes_.heads, sizes_.head_dim, false};
    Var qkv = rope_.rotate(queries_keys_values(q, latent, c), layout);
    Var attended = causal_ ? causal_attention(qkv, layout) : bidirectional_attention(qkv, layout);
    if (clip_ != nullptr) {
      clip_->observe(qkv, attended, layout, causal_);
    }
    return attended;
  }

  /// The part of a position's key that all heads share, still to be rotated: [B, T, rotated]
  Var shared_key(Var latent) const { return slice(latent, -1, kv_rank_, kv_rank_ + sizes_.rotated); }

  Var attend_behind_pasts(Var q, Var latent, Var c) const {
    const int64_t width = q.shape()[-1];
    const int64_t latent_width = latent.shape()[-1];
    const Var together[] = {q, latent, c};
    return for_each_sequence(concat(together, -1), [&](Var one) {
      return attend_behind(q.tape().past(), slice(one, -1, 0, width), slice(one, -1, width, width + latent_width),
                           slice(one, -1, width + latent_width, width + latent_width + kv_rank_));
    });
  }

  /// The same of one sequence behind what was read of it before. Kept of a position is one row for all heads, [latent |
  /// rotated key], and a head's part of W_kv_b goes into its query and its output (DeepSeek-V2, sec. 2.1.2).
  Var attend_behind(Past& past, Var q, Var latent, Var c) const {
    const int64_t T = q.shape()[1];
    const int64_t row = kv_rank_ + sizes_.rotated;
    Var queries = by_head(q, sizes_.heads);
    Var kept_row = c;
    if (sizes_.rotated > 0) {
      // One head's key with the shared elements, and values that rope leaves alone: the layout that it knows.
      const QkvLayout layout = {sizes_.heads, 1, sizes_.head_dim, false};
      const int64_t padding = 2 * sizes_.head_dim - sizes_.rotated;
      const Var packed[] = {q, shared_key(latent), q.tape().filled({1, T, padding}, 0, q.dtype())};
      Var rotated = rope_.rotate(concat(packed, -1), layout);
      queries = by_head(slice(rotated, -1, 0, layout.k_offset()), sizes_.heads);
      const Var kept_parts[] = {c, slice(rotated, -1, layout.k_offset(), layout.k_offset() + sizes_.rotated)};
      kept_row = concat(kept_parts, -1);
    }
    const KeptRows kept = {.keys = past.buffer(path(), 0, {1, past.capacity(), row}, q.dtype()),
                           .value_width = kv_rank_};
    keep_rows(by_head(kept_row, 1), kept.keys, past.positions());
    if (past.positions() == 0) {
      return attend(q, latent, c);  // a whole prompt at once
    }
    Var weight = reshape(q.tape().parameter(kv_b_.weight()), {sizes_.heads, sizes_.plain + sizes_.head_dim, kv_rank_});
    Var seen = past_attention(latent_queries(queries, weight), kept, past.positions(),
                              1 / std::sqrt(static_cast<double>(sizes_.head_dim)));
    Var latents = transpose(reshape(seen, {T, sizes_.heads, kv_rank_}), {1, 0, 2});  // [heads, T, kv_rank]
    Var of_values = slice(weight, 1, sizes_.plain, sizes_.plain + sizes_.head_dim);
    Var heads = matmul(latents, of_values, true);  // [heads, T, head_dim]
    return reshape(transpose(heads, {1, 0, 2}), {1, T, sizes_.heads * sizes_.head_dim});
  }

  /// queries [1, T, heads, head_dim] as they meet a kept row [latent | rotated key]: [1, T, heads, kv_rank + rotated].
  Var latent_queries(Var queries, Var weight) const {
    const int64_t T = queries.shape()[1];
    const Shape shape = {1, T, sizes_.heads, kv_rank_};
    if (sizes_.plain == 0) {  // keys have nothing of the latent
      const Var parts[] = {queries.tape().filled(shape, 0, queries.dtype()), queries};
      return concat(parts, -1);
    }
    Var plain = transpose(slice(queries, -1, sizes_.rotated, sizes_.head_dim), {0, 2, 1, 3});
    Var of_keys = slice(weight, 1, 0, sizes_.plain);
    Var absorbed = matmul(reshape(plain, {sizes_.heads, T, sizes_.plain}), of_keys);  // [heads, T, kv_rank]
    Var by_position = reshape(transpose(absorbed, {1, 0, 2}), shape);
    if (sizes_.rotated == 0) {
      return by_position;
    }
    const Var parts[] = {by_position, slice(queries, -1, 0, sizes_.rotated)};
    return concat(parts, -1);
  }

  /// [B, T, 3 * heads * head_dim], in each query and key the rotated elements first.
  Var queries_keys_values(Var q, Var latent, Var c) const {
    const int64_t B = q.shape()[0];
    const int64_t T = q.shape()[1];
    const int64_t width = sizes_.heads * sizes_.head_dim;
    Var kv = by_head(kv_b_.forward(c), sizes_.heads);  // [B, T, heads, plain + head_dim]
    Var k = slice(kv, -1, 0, sizes_.plain);
    if (sizes_.rotated > 0) {
      Var shared = reshape(shared_key(latent), {B, T, 1, sizes_.rotated});
      const Var parts[] = {expand(shared, 2, sizes_.heads), k};
      k = concat(parts, -1);
    }
    Var v = slice(kv, -1, sizes_.plain, sizes_.plain + sizes_.head_dim);
    const Var parts[] = {q, reshape(k, {B, T, width}), reshape(v, {B, T, width})};
    return concat(parts, -1);
  }

  /// What scores are products of: the rotated elements, whose key all heads share, and the plain ones.
  std::vector<ScoreRows> score_rows() const {
    const auto queries = [this](int64_t first, int64_t count) {
      return HeadRows{&q_->weight(), q_->bias(), first, sizes_.head_dim, count};
    };
    const HeadRows plain_keys = {&kv_b_.weight(), nullptr, 0, sizes_.plain + sizes_.head_dim, sizes_.plain};
    return {{queries(0, sizes_.rotated), {}}, {queries(sizes_.rotated, sizes_.plain), plain_keys}};
  }

  MlaSizes sizes_;
  bool causal_;
  int64_t kv_rank_;
  const RopeTable& rope_;
  Linear kv_a_;
  std::unique_ptr<Norm> kv_a_norm_;
  Linear kv_b_;
  Linear out_;
  std::unique_ptr<Linear> q_a_;     // null: queries have no latent
  std::unique_ptr<Norm> q_a_norm_;  // likewise
  std::unique_ptr<Linear> q_;
  std::unique_ptr<HeadGate> gate_;  // null: none
  std::unique_ptr<QkClip> clip_;    // null: off
};

}  // namespace

/// A decoder keeps the latent and the shared rotated key, and multiplies with these: W_kv_b is taken into queries and
/// outputs (DeepSeek-V2, sec. 2.1.2), so that a score is a product of kv_rank + rotated elements.
MixerCost mla_cost(const ModelConfig& config, int64_t) {
  const MlaSizes sizes = sizes_of(config);
  const int64_t width = sizes.heads * sizes.head_dim;
  const int64_t latent = config.mla_kv_rank + sizes.rotated;
  // Beside latents and what W_kv_b writes: q|k|v, and what the heads attended to.
  return {.score_width = width,
          .saved_values = config.mla_q_rank + latent + sizes.heads * (sizes.plain + sizes.head_dim) + 4 * width,
          .flops_per_past = 2 * sizes.heads * (latent + config.mla_kv_rank),
          .cached_values = latent};
}

std::unique_ptr<Sublayer> make_mla(const ModelConfig& config, const Scope& block, const RopeTable& rope, int64_t) {
  return std::make_unique<LatentAttention>(config, block / "self_attn", rope);
}

}  // namespace minillm
