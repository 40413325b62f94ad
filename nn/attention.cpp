#include "nn/attention.h"

#include "nn/init.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/part_table.h"

namespace minillm {

QkvLayout layout_of(const ModelConfig& config) {
  return {config.n_heads, config.n_kv_heads, config.head_dim, config.attention_gate == "elementwise"};
}

namespace {

/// Multi-head attention (Vaswani et al. 2017) with grouped keys and values (Ainslie et al. 2023), rotary positions,
/// optional RMSNorm of queries and keys, and an optional elementwise output gate whose logits are the second half of
/// each head's slice of q_proj (Qiu et al. 2025).
class FullAttention final : public Sublayer {
 public:
  FullAttention(const ModelConfig& config, const Scope& scope, const RopeTable& rope)
      : Sublayer(scope),
        layout_(layout_of(config)),
        eps_(config.norm_eps),
        gain_offset_(get_part(norm_kinds(), "model.norm", config.norm).gain_offset),
        rope_(rope),
        qkv_(scope, "qkv_proj",
             {{"q_proj", layout_.k_offset()},
              {"k_proj", layout_.n_kv_heads * layout_.head_dim},
              {"v_proj", layout_.n_kv_heads * layout_.head_dim}},
             config.d_model, matrix_init(), config.bias),
        out_(scope / "o_proj", layout_.n_heads * layout_.head_dim, config.d_model, residual_out_init(config),
             config.bias) {
    if (config.qk_norm) {
      const Init gain = Init::constant(1 - gain_offset_);
      q_gain_ = &(scope / "q_norm").declare("weight", {layout_.head_dim}, gain);
      k_gain_ = &(scope / "k_norm").declare("weight", {layout_.head_dim}, gain);
    }
  }

  Var forward(Var x) const override {
    Tape& tape = x.tape();
    const auto scope = tape.enter(path());
    Var qkv = qkv_.forward(x);  // [B, T, layout.width()]
    if (q_gain_ != nullptr) {
      qkv = qk_norm(qkv, tape.parameter(*q_gain_), tape.parameter(*k_gain_), layout_, eps_, gain_offset_);
    }
    qkv = rope_.rotate(qkv, layout_);
    Var attended = causal_attention(qkv, layout_);  // [B, T, n_heads * head_dim]
    if (layout_.gated) {
      attended = attention_gate(attended, qkv, layout_);
    }
    return out_.forward(attended);  // [B, T, d]
  }

 private:
  QkvLayout layout_;
  double eps_;
  double gain_offset_;
  const RopeTable& rope_;
  Linear qkv_;
  Linear out_;
  Parameter* q_gain_ = nullptr;  // null: queries and keys are used as projected
  Parameter* k_gain_ = nullptr;
};

std::unique_ptr<Sublayer> make_full(const ModelConfig& config, const Scope& scope, const RopeTable& rope) {
  return std::make_unique<FullAttention>(config, scope, rope);
}

constexpr MixerKind table[] = {
    {"full", make_full},
};

}  // namespace

std::span<const MixerKind> mixer_kinds() {
  return table;
}

std::unique_ptr<Sublayer> make_mixer(const ModelConfig& config, const Scope& scope, const RopeTable& rope) {
  return get_part(mixer_kinds(), "model.attention", config.attention).make(config, scope, rope);
}

}  // namespace minillm
