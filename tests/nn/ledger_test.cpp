// Parameter counts against hand calculation.

#include "nn/ledger.h"

#include <doctest/doctest.h>

#include <functional>

using namespace minillm;

namespace {

ModelConfig baseline() {
  ModelConfig config;
  config.vocab_size = 2048;
  return config;
}

int64_t count_of(ModelConfig config) {
  derive(config, 0, 256);
  return Transformer(config).parameters().count();
}

Ledger ledger_of(ModelConfig config) {
  derive(config, 0, 256);
  return make_ledger(Transformer(config));
}

const TensorGroup& group(const Ledger& ledger, std::string_view name) {
  for (const TensorGroup& entry : ledger.groups) {
    if (entry.name() == name) {
      return entry;
    }
  }
  FAIL("no group " << name);
  return ledger.groups.front();
}

}  // namespace

TEST_CASE("the baseline's ledger, line by line") {
  const Ledger ledger = ledger_of(baseline());
  CHECK(ledger.parameters == 3688704);
  CHECK(group(ledger, "embed_tokens").parameters == 524288);
  CHECK(group(ledger, "full_attention").per_unit == 262144);
  CHECK(group(ledger, "full_attention").derivation == "4*256*256");
  CHECK(group(ledger, "ffn").per_unit == 528384);
  CHECK(group(ledger, "ffn").derivation == "3*256*688");
  CHECK(group(ledger, "ffn").share == doctest::Approx(0.572975).epsilon(1e-6));
  CHECK(group(ledger, "norms").per_unit == 512);
  CHECK(group(ledger, "norms").beside == 256);
  CHECK(ledger.active_parameters == ledger.parameters);
  CHECK(group(ledger, "norms").parameters == 4 * 512 + 256);
  CHECK(ledger.classic_estimate == 12 * 4 * 256 * 256 + 2048 * 256);
  CHECK(ledger.crossover_context() == 1032);
  CHECK(ledger.kv_values_per_token == 2048);
  // Forward and twice as much backward: two for every element of a matrix, the tied head among them, and two for every
  // element of the 128.5 keys and 128.5 values that a position of T = 256 reads on average in each of four layers.
  CHECK(ledger.flops_per_token == 3 * (2 * (4 * (262144 + 528384) + 524288) + 4 * 2 * 2 * 257 * 256 / 2));
}

TEST_CASE("8 d / 3, rounded up") {
  CHECK(gated_width(256, 16) == 688);
  CHECK(gated_width(4096, 256) == 11008);  // Llama 2 7B
  CHECK(gated_width(8192, 256) == 22016);  // DeepSeek LLM 67B
  CHECK(gated_width(5120, 256) == 13824);
  CHECK(gated_width(24, 16) == 64);  // where it divides, itself
}

TEST_CASE("a decoder of latent attention meets each past token's latent, not its keys and values") {
  ModelConfig config = baseline();
  config.attention = "mla";
  config.rope_fraction = 0.5;
  config.mla_kv_rank = 64;
  const Ledger ledger = ledger_of(config);
  // In each of four layers 8 heads: a product of 64 + 16 elements for the score, 64 for the sum; a latent and a key.
  CHECK(ledger.score_flops_per_past == 4 * 8 * 2 * (80 + 64));
  CHECK(ledger.kv_values_per_token == 4 * 80);
  CHECK(ledger.sequence_crossover() == 2 * 1032 - 1);  // over a whole sequence latents are multiplied out
  CHECK(ledger_of(baseline()).score_flops_per_past == 4 * 4 * 256);
}

TEST_CASE("a gate on attention is counted wherever it stands") {
  const auto gate_of = [](const char* gate, const char* activation) {
    ModelConfig config = baseline();
    config.attention_gate = gate;
    config.attention_gate_activation = activation;
    return ledger_of(config);
  };
  CHECK(gate_of("none", "sigmoid").gate_parameters == 0);
  CHECK(gate_of("elementwise", "sigmoid").gate_parameters == 256 * 256);
  CHECK(gate_of("elementwise", "sigmoid").query_rows == 512);
  CHECK(gate_of("elementwise", "silu").gate_parameters == 256 * 256);
  CHECK(gate_of("elementwise", "silu").query_rows == 256);
  CHECK(gate_of("headwise", "sigmoid").gate_parameters == 8 * 256);
}

TEST_CASE("counts of the matched variants") {
  struct Row {
    const char* what;
    int64_t expected;
    std::function<void(ModelConfig&)> change;
  };
  const Row rows[] = {
      {"no residual", 3688704, [](ModelConfig& c) { c.residual = "none"; }},
      {"LayerNorm", 3691008, [](ModelConfig& c) { c.norm = "layernorm"; }},
      {"zero-centered", 3688704, [](ModelConfig& c) { c.norm = "zero_centered_rmsnorm"; }},
      {"Post-LN", 3688448, [](ModelConfig& c) { c.norm_position = "post"; }},
      {"sublayer output", 3688704, [](ModelConfig& c) { c.norm_position = "sublayer_output"; }},
      {"QK-Norm", 3688960, [](ModelConfig& c) { c.qk_norm = true; }},
      {"GELU 1024", 3672320, [](ModelConfig& c) { c.ffn = "gelu", c.d_ff = 1024; }},
      {"GELU 1032", 3688704, [](ModelConfig& c) { c.ffn = "gelu", c.d_ff = 1032; }},
      {"ReLU 1032", 3688704, [](ModelConfig& c) { c.ffn = "relu", c.d_ff = 1032; }},
      {"GEGLU", 3688704, [](ModelConfig& c) { c.ffn = "geglu"; }},
      {"no FFN, 12 layers", 3673344, [](ModelConfig& c) { c.ffn = "none", c.n_layers = 12; }},
      {"elementwise gate, 608", 3705088, [](ModelConfig& c) { c.attention_gate = "elementwise", c.d_ff = 608; }},
      {"GQA 2, 816", 3688704, [](ModelConfig& c) { c.n_kv_heads = 2, c.d_ff = 816; }},
      {"ScaleNorm", 3686409, [](ModelConfig& c) { c.norm = "scalenorm"; }},
      {"no norm", 3688704 - 2304, [](ModelConfig& c) { c.norm = "none"; }},
      {"SiTU-GLU", 3688704, [](ModelConfig& c) { c.ffn = "situ_glu"; }},
      {"headwise gate", 3696896, [](ModelConfig& c) { c.attention_gate = "headwise"; }},
      {"mHC, 624", 3693021, [](ModelConfig& c) { c.residual = "mhc", c.d_ff = 624; }},
      {"AttnRes", 3691008, [](ModelConfig& c) { c.residual = "attnres"; }},
      {"3 GDN + 1 full", 3707280,
       [](ModelConfig& c) { c.attention = "hybrid", c.gdn_key_heads = 4, c.gdn_value_heads = 8; }},
      {"untied", 4212992, [](ModelConfig& c) { c.tie_embeddings = false; }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    ModelConfig config = baseline();
    row.change(config);
    CHECK(count_of(config) == row.expected);
  }
}

TEST_CASE("a 15 M Llama-shaped model, tied and untied") {
  ModelConfig config;
  config.vocab_size = 32000;
  config.d_model = 288;
  config.n_layers = 6;
  config.n_heads = 6;
  config.d_ff = 768;
  CHECK(count_of(config) == 15191712);
  config.tie_embeddings = false;
  CHECK(count_of(config) == 24407712);
}

TEST_CASE("GPT-2's 124 M from its sizes") {
  ModelConfig config;
  config.vocab_size = 50257;
  config.d_model = 768;
  config.n_layers = 12;
  config.n_heads = 12;
  config.d_ff = 3072;
  config.max_seq_len = 1024;
  config.position = "learned";
  config.norm = "layernorm";
  config.ffn = "gelu_tanh";
  config.bias = true;
  CHECK(count_of(config) == 124439808);
}

TEST_CASE("a hybrid's ledger tells linear layers from full ones, and what a decoder keeps") {
  ModelConfig config = baseline();
  config.attention = "hybrid";
  config.gdn_key_heads = 4;
  config.gdn_value_heads = 8;
  const Ledger ledger = ledger_of(config);
  CHECK(group(ledger, "full_attention").units == 1);
  CHECK(group(ledger, "full_attention").per_unit == 262144);
  CHECK(group(ledger, "linear_attention").units == 3);
  // q|k|v|z 256 x 768, b|a 256 x 16, convolution 512 x 4, A_log and dt_bias 8 each, a norm of 32, output 256 x 256
  CHECK(group(ledger, "linear_attention").per_unit == 256 * 768 + 256 * 16 + 4 * 512 + 2 * 8 + 32 + 256 * 256);
  CHECK(group(ledger, "linear_attention").per_unit == 268336);
  CHECK(ledger.kv_values_per_token == 512);
  CHECK(ledger.state_values == 3 * 8 * 32 * 32);
  CHECK(ledger.crossover_context() == 4 * 1032);
}

TEST_CASE("of a mixture the chosen experts are active") {
  ModelConfig config = baseline();
  config.ffn = "moe";
  config.d_ff = 172;
  config.moe_experts = 4;
  config.moe_top_k = 1;
  config.moe_shared_d_ff = 100;
  const Ledger ledger = ledger_of(config);
  CHECK(group(ledger, "ffn").per_unit == 4 * 3 * 256 * 172 + 3 * 256 * 100);
  CHECK(group(ledger, "router").per_unit == 4 * 256);
  CHECK(ledger.parameters - ledger.active_parameters == 4 * 3 * 3 * 256 * 172);
  CHECK(ledger.crossover_context() == 1.5 * 272);
}

TEST_CASE("a widened stream is counted as residual, its ends beside the layers") {
  ModelConfig config = baseline();
  config.residual = "mhc";
  const Ledger ledger = ledger_of(config);
  CHECK(group(ledger, "residual").per_unit == 2 * 24603);
  CHECK(group(ledger, "residual").beside == 4101);
}
