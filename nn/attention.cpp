#include "nn/attention.h"

#include "nn/head_gate.h"
#include "nn/kept_rows.h"
#include "nn/norm.h"
#include "nn/part_table.h"
#include "nn/qk_clip.h"

#include <cmath>

namespace minillm {

namespace {

constexpr GatePosition gate_position_table[] = {
    {"attended", GatePlace::attended,
     [](const ModelConfig&, const QkvLayout& layout) {
       return GatedColumns{0, layout.n_heads, layout.head_dim};
     }},
    {"q", GatePlace::projection,
     [](const ModelConfig&, const QkvLayout& layout) {
       return GatedColumns{0, layout.n_heads, layout.head_dim};
     }},
    {"k", GatePlace::projection,
     [](const ModelConfig&, const QkvLayout& layout) {
       return GatedColumns{layout.k_offset(), layout.n_kv_heads, layout.head_dim};
     }},
    {"v", GatePlace::projection,
     [](const ModelConfig&, const QkvLayout& layout) {
       return GatedColumns{layout.v_offset(), layout.n_kv_heads, layout.head_dim};
     }},
    {"output", GatePlace::output,
     [](const ModelConfig& config, const QkvLayout&) {
       return GatedColumns{0, 1, config.d_model};
     }},
};

/// Whether the gate's logits are the second half of each head's slice of q_proj, and not another projection's.
bool gate_is_in_q_proj(const ModelConfig& config) {
  return has_full_attention(config) && config.attention_gate == "elementwise" &&
         config.attention_gate_position == "attended" && config.attention_gate_activation == "sigmoid";
}

}  // namespace

std::span<const GatePosition> gate_positions() {
  return gate_position_table;
}

QkvLayout layout_of(const ModelConfig& config) {
  return {config.n_heads, config.n_kv_heads, config.head_dim, gate_is_in_q_proj(config)};
}

namespace {

/// qkv with change(columns [begin, end)) in their place.
template <class Change>
Var replace_columns(Var qkv, int64_t begin, int64_t end, Change change) {
  const int64_t width = qkv.shape()[-1];
  Var parts[3];
  size_t count = 0;
  if (begin > 0) {
    parts[count++] = slice(qkv, -1, 0, begin);
  }
  parts[count++] = change(slice(qkv, -1, begin, end));
  if (end < width) {
    parts[count++] = slice(qkv, -1, end, width);
  }
  return concat({parts, count}, -1);
}

/// Multi-head attention (Vaswani et al. 2017) with grouped keys and values (Ainslie et al. 2023), rotary positions,
/// optional RMSNorm of queries and keys, and an optional gate: on what the heads attended to, or for comparison on
/// queries, keys, values or the sublayer's output.
class FullAttention final : public Sublayer {
 public:
  FullAttention(const ModelConfig& config, const Scope& scope, const RopeTable& rope)
      : Sublayer(scope),
        layout_(layout_of(config)),
        causal_(config.causal),
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
    const Init gain = Init::constant(1 - gain_offset_);
    const bool whole = config.qk_norm_over == "width";
    if (config.qk_norm || config.qkv_norm) {
      q_gain_ = &(scope / "q_norm").declare("weight", {whole ? q_width() : layout_.head_dim}, gain);
      k_gain_ = &(scope / "k_norm").declare("weight", {whole ? kv_width() : layout_.head_dim}, gain);
    }
    if (config.qkv_norm) {
      v_gain_ = &(scope / "v_norm").declare("weight", {whole ? kv_width() : layout_.head_dim}, gain);
    }
    if (config.attention_gate != "none" && !layout_.gated) {
      const GatePosition& position =
          get_part(gate_positions(), "model.attention_gate_position", config.attention_gate_position);
      gate_place_ = position.place;
      gated_ = position.columns(config, layout_);
      gate_ = std::make_unique<HeadGate>(config, scope, gated_.heads, gated_.width);
    }
    if (config.qk_clip > 0 && q_gain_ == nullptr) {  // normalised queries do not follow the weights' size
      clip_ =
          std::make_unique<QkClip>(config.qk_clip, scope.store(), layout_.n_heads, layout_.n_kv_heads, score_rows());
    }
  }

  Var forward(Var x) const override {
    Tape& tape = x.tape();
    const auto scope = tape.enter(path());
    Var qkv = qkv_.forward(x);  // [B, T, layout.width()]
    if (has_gate_at(GatePlace::projection)) {
      const int64_t end = gated_.begin + gated_.heads * gated_.width;
      qkv = replace_columns(qkv, gated_.begin, end, [&](Var part) { return gate_->forward(part, x); });
    }
    qkv = normalised(qkv);
    Var attended;  // [B, T, n_heads * head_dim]
    if (tape.reads_on()) {
      attended =
          for_each_sequence(qkv, [&](Var one) { return attend_behind(tape.past(), rope_.rotate(one, layout_)); });
    } else {
      qkv = rope_.rotate(qkv, layout_);
      attended = causal_ ? causal_attention(qkv, layout_) : bidirectional_attention(qkv, layout_);
    }
    if (clip_ != nullptr) {
      clip_->observe(qkv, attended, layout_, causal_);
    }
    if (layout_.gated) {
      attended = attention_gate(attended, qkv, layout_);
    }
    if (has_gate_at(GatePlace::attended)) {
      attended = gate_->forward(attended, x);
    }
    Var out = out_.forward(attended);  // [B, T, d]
    return has_gate_at(GatePlace::output) ? gate_->forward(out, x) : out;
  }

 private:
  int64_t q_width() const { return layout_.n_heads * layout_.head_dim; }
  int64_t kv_width() const { return layout_.n_kv_heads * layout_.head_dim; }

  /// [1, T, n_heads * head_dim] of one sequence, behind what was read of it before.
  Var attend_behind(Past& past, Var qkv) const {
    const int64_t T = qkv.shape()[1];
    const int64_t d = layout_.head_dim;
    const auto heads_of = [&](int64_t begin, int64_t end, int64_t stride) {
      return reshape(slice(qkv, -1, begin, end), {1, T, (end - begin) / stride, stride});
    };
    const Shape kept_shape = {layout_.n_kv_heads, past.capacity(), d};
    const KeptRows kept = {.keys = past.buffer(path(), 0, kept_shape, qkv.dtype()),
                           .values = past.buffer(path(), 1, kept_shape, qkv.dtype())};
    keep_rows(heads_of(layout_.k_offset(), layout_.v_offset(), d), kept.keys, past.positions());
    keep_rows(heads_of(layout_.v_offset(), layout_.width(), d), kept.values, past.positions());
    if (past.positions() == 0) {
      return causal_attention(qkv, layout_);  // a whole prompt at once
    }
    Var q = heads_of(0, layout_.k_offset(), layout_.q_stride());
    return past_attention(layout_.gated ? slice(q, -1, 0, d) : q, kept, past.positions(),
                          1 / std::sqrt(static_cast<double>(d)));
  }

  /// Queries, keys and values as far as they have gains, each head by itself or the whole width at once.
  Var normalised(Var qkv) const {
    Tape& tape = qkv.tape();
    if (q_gain_ != nullptr && q_gain_->shape[0] == layout_.head_dim) {
      qkv = qk_norm(qkv, tape.parameter(*q_gain_), tape.parameter(*k_gain_), layout_, eps_, gain_offset_);
    } else if (q_gain_ != nullptr) {
      qkv = layout_.gated ? with_rms_queries(qkv) : with_rms_columns(qkv, 0, q_width(), q_width(), *q_gain_);
      qkv = with_rms_columns(qkv, layout_.k_offset(), layout_.v_offset(), kv_width(), *k_gain_);
    }
    return v_gain_ == nullptr ? qkv
                              : with_rms_columns(qkv, layout_.v_offset(), layout_.width(), v_gain_->shape[0], *v_gain_);
  }

  /// Columns [begin, end) of each row, RMSNorm applied to every `width` of them.
  Var with_rms_columns(Var qkv, int64_t begin, int64_t end, int64_t width, Parameter& gain) const {
    return replace_columns(qkv, begin, end, [&](Var columns) {
      const Shape shape = columns.shape();
      Var parts = reshape(columns, {shape[0], shape[1], (end - begin) / width, width});
      return reshape(rmsnorm(parts, qkv.tape().parameter(gain), eps_, gain_offset_), shape);
    });
  }

  /// The same for queries over the whole width where each is followed by its gate.
  Var with_rms_queries(Var qkv) const {
    return replace_columns(qkv, 0, layout_.k_offset(), [&](Var columns) {
      const int64_t B = columns.shape()[0];
      const int64_t T = columns.shape()[1];
      const int64_t width = layout_.head_dim;
      Var heads = reshape(columns, {B, T, layout_.n_heads, 2 * width});
      Var queries = reshape(slice(heads, -1, 0, width), {B, T, q_width()});
      Var normed = rmsnorm(queries, qkv.tape().parameter(*q_gain_), eps_, gain_offset_);
      const Var parts[] = {reshape(normed, {B, T, layout_.n_heads, width}), slice(heads, -1, width, 2 * width)};
      return reshape(concat(parts, -1), columns.shape());
    });
  }

  bool has_gate_at(GatePlace place) const { return gate_ != nullptr && gate_place_ == place; }

  /// What scores are products of: the whole of each head's query and of each key.
  std::vector<ScoreRows> score_rows() const {
    const int64_t width = layout_.head_dim;
    const HeadRows queries = {&qkv_.weight(), qkv_.bias(), 0, layout_.q_stride(), width};
    const HeadRows keys = {&qkv_.weight(), qkv_.bias(), layout_.k_offset(), width, width};
    return {{queries, keys}};
  }

  QkvLayout layout_;
  bool causal_;
  double eps_;
  double gain_offset_;
  const RopeTable& rope_;
  Linear qkv_;
  Linear out_;
  Parameter* q_gain_ = nullptr;  // null: queries and keys are used as projected
  Parameter* k_gain_ = nullptr;
  Parameter* v_gain_ = nullptr;
  std::unique_ptr<QkClip> clip_;    // null: off
  std::unique_ptr<HeadGate> gate_;  // null: none, or among the queries
  GatePlace gate_place_ = GatePlace::attended;
  GatedColumns gated_ = {};
};

std::unique_ptr<Sublayer> make_full(const ModelConfig& config, const Scope& block, const RopeTable& rope, int64_t) {
  return std::make_unique<FullAttention>(config, block / "self_attn", rope);
}

MixerCost full_cost(const ModelConfig& config, int64_t) {
  const int64_t width = config.n_heads * config.head_dim;
  return {.score_width = width,
          .saved_values = layout_of(config).width() + width,
          .flops_per_past = 4 * width,
          .cached_values = 2 * config.n_kv_heads * config.head_dim};
}

}  // namespace

// In files of their own: nn/mla.cpp, nn/gated_deltanet.cpp.
std::unique_ptr<Sublayer> make_mla(const ModelConfig& config, const Scope& block, const RopeTable& rope, int64_t layer);
MixerCost mla_cost(const ModelConfig& config, int64_t layer);
std::unique_ptr<Sublayer> make_gdn(const ModelConfig& config, const Scope& block, const RopeTable& rope, int64_t layer);
MixerCost gdn_cost(const ModelConfig& config, int64_t layer);

namespace {

/// Every full_attention_every-th layer is full, the others are linear.
bool is_full(const ModelConfig& config, int64_t layer) {
  return (layer + 1) % config.full_attention_every == 0;
}

std::unique_ptr<Sublayer> make_hybrid(const ModelConfig& config, const Scope& block, const RopeTable& rope,
                                      int64_t layer) {
  return (is_full(config, layer) ? make_full : make_gdn)(config, block, rope, layer);
}

MixerCost hybrid_cost(const ModelConfig& config, int64_t layer) {
  return (is_full(config, layer) ? full_cost : gdn_cost)(config, layer);
}

constexpr MixerKind mixer_table[] = {
    {"full", make_full, full_cost},
    {"gdn", make_gdn, gdn_cost},
    {"hybrid", make_hybrid, hybrid_cost},
    {"mla", make_mla, mla_cost},
};

}  // namespace

std::span<const MixerKind> mixer_kinds() {
  return mixer_table;
}

std::unique_ptr<Sublayer> make_mixer(const ModelConfig& config, const Scope& block, const RopeTable& rope,
                                     int64_t layer) {
  return get_part(mixer_kinds(), "model.attention", config.attention).make(config, block, rope, layer);
}

MixerCost mixer_cost(const ModelConfig& config, int64_t layer) {
  return get_part(mixer_kinds(), "model.attention", config.attention).cost(config, layer);
}

}  // namespace minillm
