// What one forward pass shows of each layer, where the values are known.

#include "generate/layer_statistics.h"

#include "core/rng.h"
#include "tests/set_weights.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

using namespace minillm;
using minillm::test::set_weights;

namespace {

constexpr int64_t T = 6;

ModelConfig small() {
  ModelConfig config;
  config.vocab_size = 50;
  config.d_model = 16;
  config.n_layers = 2;
  config.n_heads = 2;
  config.d_ff = 24;
  return config;
}

std::vector<LayerStatistics> of(ModelConfig config, const std::function<void(Transformer&)>& change) {
  derive(config, 0, T);
  Transformer model(config);
  model.allocate(DType::float32, 1, false);
  change(model);
  std::vector<int32_t> ids(2 * T);
  RandomStream random(random_key(1, "ids"));
  for (int32_t& id : ids) {
    id = static_cast<int32_t>(random.below(50));
  }
  return layer_statistics(model, ids, 2);
}

const auto zero = [](int64_t, double) { return 0.0; };

}  // namespace

TEST_CASE("a stream that no sublayer writes to keeps its size, and equal tokens have cosine 1") {
  const std::vector<LayerStatistics> layers = of(small(), [](Transformer& model) {
    set_weights(model, "o_proj.weight", zero);
    set_weights(model, "down_proj.weight", zero);
    set_weights(model, "embed_tokens.weight",
                [](int64_t i, double) { return i % 16 == 0 ? 8.0 : 0.0; });  // all rows alike
  });
  REQUIRE(layers.size() == 2);
  for (const LayerStatistics& layer : layers) {
    CHECK(layer.stream_rms == doctest::Approx(8 / std::sqrt(16.0)));
    CHECK(layer.token_cosine == doctest::Approx(1));
    CHECK(layer.mean_share == doctest::Approx(1.0 / 16));  // one feature of 16: (8/16)^2 of 64/16
    CHECK(layer.norm_gain == doctest::Approx(1));
    CHECK(layer.expert_shares.empty());
  }
}

TEST_CASE("gains are told relative to where they began, over a layer's norms") {
  const auto half = [](int64_t, double) { return 0.5; };
  CHECK(of(small(), [&](Transformer& model) { set_weights(model, "input_layernorm.weight", half); })[1].norm_gain ==
        doctest::Approx(0.75));
  ModelConfig centered = small();
  centered.norm = "zero_centered_rmsnorm";
  const auto pressed = [](Transformer& model) {
    set_weights(model, "layernorm.weight", [](int64_t, double) { return -0.75; });
  };
  CHECK(of(centered, pressed)[0].norm_gain == doctest::Approx(0.25));
  ModelConfig scale = small();
  scale.norm = "scalenorm";  // one number, which starts at sqrt(16)
  CHECK(of(scale,
           [](Transformer& model) { set_weights(model, "layernorm.weight", [](int64_t, double) { return 2.0; }); })[0]
            .norm_gain == doctest::Approx(0.5));
}

TEST_CASE("what norms write has the size of their gains, and without norms there is none") {
  const auto half = [](int64_t, double) { return 0.5; };
  const auto pressed = [&](Transformer& model) { set_weights(model, "input_layernorm.weight", half); };
  for (const char* norm : {"rmsnorm", "layernorm"}) {
    ModelConfig config = small();
    config.norm = norm;
    CHECK(of(config, [](Transformer&) {})[1].norm_output == doctest::Approx(1).epsilon(0.02));
    CHECK(of(config, pressed)[1].norm_output == doctest::Approx(std::sqrt((0.25 + 1) / 2)).epsilon(0.02));
  }
  ModelConfig centered = small();
  centered.norm = "zero_centered_rmsnorm";
  CHECK(of(centered,
           [](Transformer& model) { set_weights(model, "layernorm.weight", [](int64_t, double) { return 2.0; }); })[0]
            .norm_output == doctest::Approx(3).epsilon(0.02));
  ModelConfig without = small();
  without.norm = "none";
  CHECK(std::isnan(of(without, [](Transformer&) {})[0].norm_output));
}

TEST_CASE("even attention gives the first token 1/(t + 1) on average, and its largest score is 0") {
  const std::vector<LayerStatistics> layers =
      of(small(), [](Transformer& model) { set_weights(model, "q_proj.weight", zero); });
  const double even = (1.0 / 2 + 1.0 / 3 + 1.0 / 4 + 1.0 / 5 + 1.0 / 6) / 5;
  CHECK(layers[0].first_token_share == doctest::Approx(even));
  CHECK(layers[0].largest_score == 0);
}

TEST_CASE("a first token that all queries look for gets all attention, by the score that it has") {
  ModelConfig config = small();
  config.position = "learned";
  config.bias = true;
  const std::vector<LayerStatistics> layers = of(config, [](Transformer& model) {
    // Position 0 is sqrt(16) in its first channel behind the norm; only there keys are 4 in every element.
    set_weights(model, "embed_positions.weight", [](int64_t i, double) { return i == 0 ? 1e3 : 0.0; });
    set_weights(model, "k_proj.weight", [](int64_t i, double) { return i % 16 == 0 ? 1.0 : 0.0; });
    set_weights(model, "q_proj.weight", zero);
    set_weights(model, "q_proj.bias", [](int64_t, double) { return 2.0; });
  });
  CHECK(layers[0].first_token_share > 0.999);
  CHECK(layers[0].largest_score == doctest::Approx(8 * 2 * 4 / std::sqrt(8.0)).epsilon(1e-3));
}

TEST_CASE("what down_proj reads: its largest value, and the units that are 0 for every token") {
  ModelConfig config = small();
  config.ffn = "relu";
  config.bias = true;
  const std::vector<LayerStatistics> layers = of(config, [](Transformer& model) {
    set_weights(model, "up_proj.weight", zero);
    set_weights(model, "up_proj.bias", [](int64_t i, double) { return i < 6 ? -1.0 : static_cast<double>(i); });
  });
  CHECK(layers[1].ffn_largest == 23);
  CHECK(layers[1].ffn_dead == 6.0 / 24);
}

TEST_CASE("a gate by SiLU leaves (0, 1), one by sigmoid does not") {
  // Biases alone decide: a third of the gate's units at -1, a third at 0, a third at 4.
  const auto thirds = [](int64_t i, double) { return i % 24 < 8 ? -1.0 : i % 24 < 16 ? 0.0 : 4.0; };
  const auto sigmoid_at = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto silu_at = [&](double x) { return x * sigmoid_at(x); };
  const auto set_gate = [&](Transformer& model) {
    set_weights(model, "gate_proj.weight", zero);
    set_weights(model, "gate_proj.bias", thirds);
  };
  ModelConfig config = small();
  config.bias = true;
  const GateStatistics silu = of(config, set_gate)[1].ffn_gate;
  CHECK(silu.mean == doctest::Approx((silu_at(-1) + silu_at(4)) / 3));
  CHECK(silu.below_0 == doctest::Approx(1.0 / 3));
  CHECK(silu.above_1 == doctest::Approx(1.0 / 3));
  config.ffn = "moe";
  config.moe_experts = 3;
  CHECK(of(config, set_gate)[1].ffn_gate.mean == doctest::Approx(silu.mean));
  config.ffn = "glu";
  const GateStatistics open = of(config, set_gate)[1].ffn_gate;
  CHECK(open.mean == doctest::Approx((sigmoid_at(-1) + 0.5 + sigmoid_at(4)) / 3));
  CHECK(open.below_0 + open.above_1 == 0);
  config.ffn = "gelu";
  CHECK(std::isnan(of(config, [](Transformer&) {})[1].ffn_gate.mean));
}

TEST_CASE("the gate of attention, wherever it stands, and that of a linear layer") {
  const auto gate_of = [](const std::function<void(ModelConfig&)>& change, const char* weight) {
    ModelConfig config = small();
    change(config);
    return of(config, [&](Transformer& model) { set_weights(model, weight, zero); })[0].mixer_gate;
  };
  CHECK(std::isnan(gate_of([](ModelConfig&) {}, "q_proj.weight").mean));
  for (const char* position : {"attended", "q", "k", "v", "output"}) {
    CAPTURE(position);
    const auto place = [position](ModelConfig& c) {
      c.attention_gate = "headwise", c.attention_gate_position = position;
    };
    CHECK(gate_of(place, "gate_proj.weight").mean == 0.5);  // sigmoid(0)
    const auto by_silu = [&](ModelConfig& c) { place(c), c.attention_gate_activation = "silu"; };
    CHECK(gate_of(by_silu, "gate_proj.weight").mean == 0);
    CHECK(gate_of(by_silu, "o_proj.weight").below_0 > 0.1);
  }
  CHECK(gate_of([](ModelConfig& c) { c.attention_gate = "elementwise"; }, "q_proj.weight").mean == 0.5);
  CHECK(
      gate_of([](ModelConfig& c) { c.attention = "mla", c.attention_gate = "elementwise"; }, "gate_proj.weight").mean ==
      0.5);
  const auto linear = [](const char* gate) {
    return [gate](ModelConfig& c) { c.attention = "gdn", c.gdn_gate = gate; };
  };
  CHECK(gate_of(linear("sigmoid"), "in_proj_qkvz.weight").mean == 0.5);
  CHECK(gate_of(linear("silu"), "in_proj_qkvz.weight").mean == 0);
  CHECK(gate_of(linear("silu"), "out_proj.weight").below_0 > 0.1);
}

TEST_CASE("the matrices of a residual connection are not the feed-forward network's") {
  ModelConfig config = small();
  config.residual = "gated";
  config.ffn = "none";
  const std::vector<LayerStatistics> layers = of(config, [](Transformer&) {});
  CHECK(std::isnan(layers[1].ffn_largest));
  CHECK(std::isnan(layers[1].ffn_dead));
}

TEST_CASE("of a mixture the experts' shares, and the hidden values of all that worked") {
  ModelConfig config = small();
  config.ffn = "moe";
  config.moe_experts = 4;
  config.moe_top_k = 2;
  config.moe_unit = "reglu";
  config.moe_shared_d_ff = 8;
  config.bias = true;
  const std::vector<LayerStatistics> layers = of(config, [](Transformer& model) {
    set_weights(model, "router.weight", zero);  // equal scores: the first two are chosen
    for (const char* matrix : {"gate_proj.weight", "up_proj.weight"}) {
      set_weights(model, matrix, zero);
    }
    set_weights(model, "experts.gate_proj.bias", [](int64_t i, double) { return i % 24 < 12 ? -1.0 : 1.0; });
    set_weights(model, "experts.up_proj.bias", [](int64_t i, double) { return i == 23 ? 7.0 : 1.0; });
    set_weights(model, "shared_expert.gate_proj.bias", [](int64_t, double) { return 1.0; });
    set_weights(model, "shared_expert.up_proj.bias", [](int64_t, double) { return -9.0; });
  });
  CHECK(layers[0].expert_shares == std::vector<double>{0.5, 0.5, 0, 0});
  CHECK(layers[0].ffn_largest == 9);
  CHECK(layers[0].ffn_dead == 24.0 / (2 * 24 + 8));
}
