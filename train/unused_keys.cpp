#include "train/unused_keys.h"

#include "nn/ffn.h"

#include <fmt/format.h>

namespace minillm {

namespace {

/// A key that only some values of another one use.
struct Row {
  std::string_view key;
  std::string_view decided_by;
  bool (*used)(const Config& config);
};

bool is_mixture(const Config& c) {
  return c.model.ffn == "moe";
}

/// The name of the unit of the feed-forward network or of its experts; "" when they are not gated.
std::string_view unit_of(const Config& c) {
  const FfnKind* kind = unit_kind(c.model);
  return kind == nullptr ? "" : kind->name;
}

bool has_limit(const Config& c) {
  const FfnKind* kind = unit_kind(c.model);
  return kind != nullptr && kind->default_limit > 0;
}

bool is_oai(const Config& c) {
  return unit_of(c) == "swiglu_oai";
}

bool is_situ(const Config& c) {
  return unit_of(c) == "situ_glu";
}

bool is_mla(const Config& c) {
  return c.model.attention == "mla";
}

bool has_full_layers(const Config& c) {
  return has_full_attention(c.model);
}

bool has_linear_layers(const Config& c) {
  return has_linear_attention(c.model);
}

constexpr Row table[] = {
    {"model.rope_theta", "model.position", [](const Config& c) { return c.model.position == "rope"; }},
    {"model.rope_theta", "model.attention", [](const Config& c) { return c.model.attention != "gdn"; }},
    {"model.rope_fraction", "model.position", [](const Config& c) { return c.model.position == "rope"; }},
    {"model.rope_fraction", "model.attention", [](const Config& c) { return c.model.attention != "gdn"; }},
    {"model.norm_position", "model.norm", [](const Config& c) { return c.model.norm != "none"; }},
    {"model.position", "model.attention",
     [](const Config& c) { return c.model.attention != "gdn" || c.model.position != "rope"; }},
    {"model.d_ff", "model.ffn", [](const Config& c) { return c.model.ffn != "none"; }},
    {"model.ffn_limit", "model.ffn", has_limit},
    {"model.ffn_alpha", "model.ffn", is_oai},
    {"model.ffn_gate_bound", "model.ffn", is_situ},
    {"model.ffn_up_bound", "model.ffn", is_situ},
    {"model.moe_experts", "model.ffn", is_mixture},
    {"model.moe_top_k", "model.ffn", is_mixture},
    {"model.moe_unit", "model.ffn", is_mixture},
    {"model.moe_shared_d_ff", "model.ffn", is_mixture},
    {"model.moe_shared_gate", "model.ffn", is_mixture},
    {"model.moe_shared_gate", "model.moe_shared_d_ff", [](const Config& c) { return c.model.moe_shared_d_ff > 0; }},
    {"model.norm_position", "model.residual", [](const Config& c) { return c.model.residual != "gated"; }},
    {"model.residual_streams", "model.residual",
     [](const Config& c) { return c.model.residual == "mhc" || c.model.residual == "gated"; }},
    {"model.residual_rank", "model.residual", [](const Config& c) { return c.model.residual == "gated"; }},
    {"model.residual_block", "model.residual", [](const Config& c) { return c.model.residual == "attnres"; }},
    {"model.n_kv_heads", "model.attention", has_full_layers},
    {"model.qk_norm", "model.attention", has_full_layers},
    {"model.qkv_norm", "model.attention", has_full_layers},
    {"model.qk_norm_over", "model.qk_norm", [](const Config& c) { return c.model.qk_norm || c.model.qkv_norm; }},
    {"model.qk_clip", "model.attention", [](const Config& c) { return c.model.attention != "gdn"; }},
    {"model.qk_clip", "model.qk_norm",
     [](const Config& c) { return is_mla(c) || (!c.model.qk_norm && !c.model.qkv_norm); }},
    {"model.attention_gate", "model.attention", [](const Config& c) { return c.model.attention != "gdn"; }},
    {"model.attention_gate_activation", "model.attention_gate",
     [](const Config& c) { return c.model.attention_gate != "none"; }},
    {"model.attention_gate_position", "model.attention_gate",
     [](const Config& c) { return c.model.attention_gate != "none"; }},
    {"model.attention_gate_position", "model.attention", has_full_layers},
    {"model.full_attention_every", "model.attention", [](const Config& c) { return c.model.attention == "hybrid"; }},
    {"model.mla_q_rank", "model.attention", is_mla},
    {"model.mla_kv_rank", "model.attention", is_mla},
    {"model.gdn_key_heads", "model.attention", has_linear_layers},
    {"model.gdn_value_heads", "model.attention", has_linear_layers},
    {"model.gdn_key_dim", "model.attention", has_linear_layers},
    {"model.gdn_value_dim", "model.attention", has_linear_layers},
    {"model.gdn_gate", "model.attention", has_linear_layers},
    {"model.gdn_form", "model.attention", has_linear_layers},
    {"optim.min_lr_ratio", "optim.schedule", [](const Config& c) { return c.optim.schedule != "constant"; }},
    {"optim.decay_fraction", "optim.schedule", [](const Config& c) { return c.optim.schedule == "wsd"; }},
};

std::string value_of(std::string_view key, const Config& config) {
  const size_t dot = key.find('.');
  return toml_text(*find_key(key.substr(0, dot), key.substr(dot + 1)), config);
}

}  // namespace

std::vector<std::string> unused_keys(const Config& config, const ConfigOrigins& origins) {
  std::vector<std::string> notes;
  for (const Row& row : table) {
    const auto origin = origins.find(row.key);
    if (origin != origins.end() && !row.used(config)) {
      notes.push_back(fmt::format("{}: {} is not used: {} is {}", origin->second, row.key, row.decided_by,
                                  value_of(row.decided_by, config)));
    }
  }
  return notes;
}

}  // namespace minillm
