// The way through a model and through one of its layers.

#include "nn/stages.h"

#include "tests/autograd/op_test.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace minillm;
using namespace minillm::test;

namespace {

ModelConfig with(void (*change)(ModelConfig&)) {
  ModelConfig config;
  config.vocab_size = 2048;
  change(config);
  derive(config, 0, 256);
  return config;
}

std::vector<std::string> names(const std::vector<Stage>& stages) {
  std::vector<std::string> found;
  for (const Stage& stage : stages) {
    found.push_back(stage.name);
  }
  return found;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("the stages' parameters are the model's, whatever its parts are") {
  const auto changes = {
      +[](ModelConfig&) {},
      +[](ModelConfig& c) { c.position = "learned", c.tie_embeddings = false, c.bias = true; },
      +[](ModelConfig& c) { c.residual = "mhc", c.ffn = "moe"; },
      +[](ModelConfig& c) { c.residual = "attnres", c.attention = "hybrid"; },
      +[](ModelConfig& c) { c.norm_position = "post", c.attention = "mla", c.rope_fraction = 0.5; },
      +[](ModelConfig& c) { c.residual = "gated", c.attention = "gdn"; },
  };
  for (const auto change : changes) {
    const Transformer model(with(change));
    int64_t in_stages = 0;
    int64_t in_layers = 0;
    for (const Stage& stage : model_stages(model)) {
      in_stages += stage.parameters;
      in_layers = stage.name == "4 layers" ? stage.parameters : in_layers;
    }
    CHECK(in_stages == model.parameters().count());
    int64_t in_steps = 0;
    for (int64_t layer = 0; layer < 4; ++layer) {
      for (const Stage& step : layer_steps(model, layer)) {
        in_steps += step.parameters;
      }
    }
    CHECK(in_steps == in_layers);
  }
}

TEST_CASE("a layer has seven steps, of which two are additions that leave the shape") {
  const Transformer model(with([](ModelConfig&) {}));
  const std::vector<Stage> steps = layer_steps(model, 0);
  CHECK(names(steps) == Names{"input", "norm", "token mixer: attention", "add", "norm", "FFN", "add"});
  for (const Stage& step : steps) {
    CHECK(step.reads == "[T, 256]");
    CHECK(step.writes == "[T, 256]");
  }
  CHECK(steps[2].parameters == 4 * 256 * 256);
  CHECK(steps[3].parameters == 0);
  CHECK(steps[5].parameters == 3 * 256 * 688);
  CHECK(steps[3].what.starts_with("an addition"));
  CHECK(steps[2].what == "each token sees itself and those before it");
  CHECK(residual_writes(model.config()) == 8);
}

TEST_CASE("the steps stand in the order of norm_position, and what is left out is left out") {
  const auto steps_of = [](void (*change)(ModelConfig&)) { return names(layer_steps(Transformer(with(change)), 3)); };
  CHECK(steps_of([](ModelConfig& c) { c.norm_position = "post", c.ffn = "none"; }) ==
        Names{"input", "token mixer: attention", "add", "norm"});
  CHECK(steps_of([](ModelConfig& c) { c.norm_position = "sublayer_output", c.ffn = "none"; }) ==
        Names{"input", "token mixer: attention", "norm", "add"});
  CHECK(steps_of([](ModelConfig& c) { c.residual = "none", c.norm = "none", c.attention = "gdn"; }) ==
        Names{"input", "token mixer: linear attention", "no add", "FFN", "no add"});
  CHECK(steps_of([](ModelConfig& c) { c.residual = "gated", c.ffn = "none"; }) ==
        Names{"input", "token mixer: attention", "read and write"});
  const Transformer wide(with([](ModelConfig& c) { c.residual = "mhc"; }));
  CHECK(layer_steps(wide, 0)[3].reads == "[T, 4, 256]");
  CHECK(layer_steps(wide, 0)[2].reads == "[T, 256]");
}

TEST_CASE("the feed-forward network sees each token by itself, attention does not") {
  ModelConfig config = with([](ModelConfig& c) { c.d_model = 16, c.n_heads = 2, c.d_ff = 24; });
  ParameterStore store;
  const Scope scope(store, "");
  RopeTable rope(config);
  const std::unique_ptr<Sublayer> ffn = make_ffn(config, scope / "mlp");
  const std::unique_ptr<Sublayer> mixer = make_mixer(config, scope, rope, 0);
  store.allocate(DType::float64);
  store.initialize(1);
  rope.allocate(DType::float64);
  Buffer x = normal_values({1, 5, 16}, 1);
  Buffer y = normal_values({1, 5, 16}, 1);
  y.tensor().set(0, 9);  // the first token of the two is another
  Tape tape;
  const auto last_token = [&](const Sublayer& part, const Buffer& input) {
    return values_of(slice(part.forward(tape.variable(input.tensor())), 1, 4, 5).value());
  };
  CHECK(last_token(*ffn, x) == last_token(*ffn, y));
  CHECK_FALSE(last_token(*mixer, x) == last_token(*mixer, y));
}
