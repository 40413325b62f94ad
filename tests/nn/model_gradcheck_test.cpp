// Every parameter of every module, in double, against central differences; and the same model by composed ops.

#include "nn/model_gradcheck.h"
#include "nn/transformer.h"
#include "tests/small_model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

using namespace minillm;

namespace {

struct Variant {
  const char* what;
  void (*change)(ModelConfig&);
};

const Variant variants[] = {
    {"baseline", [](ModelConfig&) {}},
    {"layernorm", [](ModelConfig& c) { c.norm = "layernorm"; }},
    {"zero-centered", [](ModelConfig& c) { c.norm = "zero_centered_rmsnorm"; }},
    {"post", [](ModelConfig& c) { c.norm_position = "post"; }},
    {"sublayer_output", [](ModelConfig& c) { c.norm_position = "sublayer_output"; }},
    {"no residual", [](ModelConfig& c) { c.residual = "none"; }},
    {"mhc", [](ModelConfig& c) { c.residual = "mhc", c.residual_streams = 3; }},
    {"mhc, sublayer_output", [](ModelConfig& c) { c.residual = "mhc", c.norm_position = "sublayer_output"; }},
    {"gated residual", [](ModelConfig& c) { c.residual = "gated", c.residual_rank = 5; }},
    {"attnres", [](ModelConfig& c) { c.residual = "attnres"; }},
    {"attnres in blocks", [](ModelConfig& c) { c.residual = "attnres", c.residual_block = 3; }},
    {"scalenorm", [](ModelConfig& c) { c.norm = "scalenorm"; }},
    {"batchnorm", [](ModelConfig& c) { c.norm = "batchnorm"; }},
    {"no norm", [](ModelConfig& c) { c.norm = "none"; }},
    {"headwise gate", [](ModelConfig& c) { c.attention_gate = "headwise"; }},
    {"SiLU gate",
     [](ModelConfig& c) { c.attention_gate = "elementwise", c.attention_gate_activation = "silu", c.n_kv_heads = 2; }},
    {"gate on values", [](ModelConfig& c) { c.attention_gate = "elementwise", c.attention_gate_position = "v"; }},
    {"gate on the output", [](ModelConfig& c) { c.attention_gate = "headwise", c.attention_gate_position = "output"; }},
    {"moe", [](ModelConfig& c) { c.ffn = "moe", c.moe_experts = 3; }},
    {"moe with a shared expert", [](ModelConfig& c) { c.ffn = "moe", c.moe_top_k = 1, c.moe_shared_d_ff = 5; }},
    {"moe of other units with a gated shared expert",
     [](ModelConfig& c) { c.ffn = "moe", c.moe_unit = "swiglu_oai", c.moe_shared_d_ff = 5, c.moe_shared_gate = true; }},
    {"qk_norm over the width", [](ModelConfig& c) { c.qk_norm = true, c.qk_norm_over = "width", c.n_kv_heads = 2; }},
    {"qkv_norm", [](ModelConfig& c) { c.qkv_norm = true; }},
    {"encoder", [](ModelConfig& c) { c.causal = false; }},
    {"mla", [](ModelConfig& c) { c.attention = "mla", c.rope_fraction = 0.5, c.mla_q_rank = 6; }},
    {"gated mla", [](ModelConfig& c) { c.attention = "mla", c.position = "none", c.attention_gate = "elementwise"; }},
    {"gdn", [](ModelConfig& c) { c.attention = "gdn"; }},
    {"gdn, a position at a time", [](ModelConfig& c) { c.attention = "gdn", c.gdn_form = "recurrent"; }},
    {"hybrid", [](ModelConfig& c) { c.attention = "hybrid", c.full_attention_every = 2, c.gdn_gate = "sigmoid"; }},
    {"no ffn", [](ModelConfig& c) { c.ffn = "none"; }},
    {"gelu, bias", [](ModelConfig& c) { c.ffn = "gelu", c.bias = true; }},
    {"gelu_tanh, learned, untied",
     [](ModelConfig& c) { c.ffn = "gelu_tanh", c.position = "learned", c.tie_embeddings = false; }},
    {"relu, sinusoidal", [](ModelConfig& c) { c.ffn = "relu", c.position = "sinusoidal"; }},
    {"silu, no position", [](ModelConfig& c) { c.ffn = "silu", c.position = "none"; }},
    {"geglu", [](ModelConfig& c) { c.ffn = "geglu"; }},
    {"glu", [](ModelConfig& c) { c.ffn = "glu"; }},
    {"bilinear, bias", [](ModelConfig& c) { c.ffn = "bilinear", c.bias = true; }},
    {"swiglu_clamp", [](ModelConfig& c) { c.ffn = "swiglu_clamp", c.ffn_limit = 0.3; }},
    {"swiglu_oai", [](ModelConfig& c) { c.ffn = "swiglu_oai", c.ffn_limit = 0.3; }},
    {"situ_glu", [](ModelConfig& c) { c.ffn = "situ_glu", c.ffn_gate_bound = 0.5, c.ffn_up_bound = 0.7; }},
    {"reglu, GQA", [](ModelConfig& c) { c.ffn = "reglu", c.n_kv_heads = 2; }},
    {"MQA, half rope", [](ModelConfig& c) { c.n_kv_heads = 1, c.rope_fraction = 0.5; }},
    {"qk_norm, zero-centered", [](ModelConfig& c) { c.qk_norm = true, c.norm = "zero_centered_rmsnorm"; }},
    {"gate, qk_norm, bias, GQA",
     [](ModelConfig& c) { c.attention_gate = "elementwise", c.qk_norm = true, c.bias = true, c.n_kv_heads = 2; }},
};

ModelConfig shrunk(const Variant& variant) {
  ModelConfig config;
  config.vocab_size = 29;
  config.n_heads = 4;
  variant.change(config);
  derive(config, 0, 7);
  return shrink_for_gradcheck(config);
}

}  // namespace

TEST_CASE("model gradients against central differences") {
  for (const Variant& variant : variants) {
    CAPTURE(variant.what);
    const std::vector<GradcheckResult> results = gradcheck_model(shrunk(variant));
    CHECK(results.size() >= 5);
    CHECK(worst_error(results) < 1e-6);
  }
}

TEST_CASE("composed ops give the fused ops' loss and gradients") {
  for (const Variant& variant : variants) {
    CAPTURE(variant.what);
    const ModelConfig config = shrunk(variant);
    const Batch batch = small_batch(5, 29);
    std::vector<Buffer> gradients;
    std::vector<double> losses;
    for (const Ops ops : {Ops::fused, Ops::composed}) {
      Transformer model(config);
      model.allocate(DType::float64, 3);
      Tape tape({.ops = ops});
      Var loss = model.forward(tape, batch);
      losses.push_back(loss.item());
      tape.backward(loss);
      model.parameters().finish_gradients();
      Buffer copy(model.parameters().gradients().shape, DType::float64);
      copy_values(model.parameters().gradients(), copy.tensor());
      gradients.push_back(std::move(copy));
    }
    CHECK(losses[0] == doctest::Approx(losses[1]).epsilon(1e-12));
    double largest = 0;
    double difference = 0;
    for (int64_t i = 0; i < gradients[0].tensor().numel(); ++i) {
      largest = std::max(largest, std::abs(gradients[0].tensor().at(i)));
      difference = std::max(difference, std::abs(gradients[0].tensor().at(i) - gradients[1].tensor().at(i)));
    }
    CHECK(largest > 0);
    CHECK(difference < 1e-12 * largest + 1e-15);
  }
}

TEST_CASE("tied weights are one tensor with the gradient of both uses") {
  ModelConfig config;
  config.vocab_size = 29;
  derive(config, 0, 7);
  config = shrink_for_gradcheck(config);
  const std::vector<GradcheckResult> results = gradcheck_model(config, {}, {.entries = 20});
  for (const GradcheckResult& result : results) {
    if (result.name == "model.embed_tokens.weight") {
      CHECK(result.error < 1e-6);
      return;
    }
  }
  FAIL("the embedding was not checked");
}
