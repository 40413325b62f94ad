// Multi-head latent attention (DeepSeek-V2 2024): keys and values of all heads come from one low-rank latent, which is
// what a decoder would cache. With a gate before o_proj it is Kimi K3's gated MLA.

#include "core/kernels/rope.h"
#include "nn/attention.h"
#include "nn/head_gate.h"
#include "nn/norm.h"
#include "nn/qk_clip.h"

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
    const QkvLayout layout = {sizes_.heads, sizes_.heads, sizes_.head_dim, false};
    Var qkv = rope_.rotate(queries_keys_values(x), layout);
    Var attended = causal_ ? causal_attention(qkv, layout) : bidirectional_attention(qkv, layout);
    if (clip_ != nullptr) {
      clip_->observe(qkv, attended, layout, causal_);
    }
    return out_.forward(gate_ != nullptr ? gate_->forward(attended, x) : attended);
  }

 private:
  /// [B, T, 3 * heads * head_dim], in each query and key the rotated elements first.
  Var queries_keys_values(Var x) const {
    const int64_t B = x.shape()[0];
    const int64_t T = x.shape()[1];
    const int64_t width = sizes_.heads * sizes_.head_dim;
    Var q = q_->forward(q_a_ != nullptr ? q_a_norm_->forward(q_a_->forward(x)) : x);
    Var latent = kv_a_.forward(x);  // [B, T, kv_rank + rotated]
    Var c = kv_a_norm_->forward(slice(latent, -1, 0, kv_rank_));
    Var kv = by_head(kv_b_.forward(c), sizes_.heads);  // [B, T, heads, plain + head_dim]
    Var k = slice(kv, -1, 0, sizes_.plain);
    if (sizes_.rotated > 0) {
      Var shared = reshape(slice(latent, -1, kv_rank_, kv_rank_ + sizes_.rotated), {B, T, 1, sizes_.rotated});
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
