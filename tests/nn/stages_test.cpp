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
        Names{"input", "read", "token mixer: attention", "write"});
}

TEST_CASE("a connection that is no addition reads before its sublayer and writes behind it") {
  const Transformer wide(with([](ModelConfig& c) { c.residual = "mhc"; }));
  const std::vector<Stage> steps = layer_steps(wide, 0);
  CHECK(names(steps) ==
        Names{"input", "read", "norm", "token mixer: attention", "write", "read", "norm", "FFN", "write"});
  CHECK(steps[1].reads == "[T, 4, 256]");
  CHECK(steps[1].writes == "[T, 256]");
  CHECK(steps[1].parameters == 24 * 4 * 256 + 24 + 3);
  CHECK(steps[3].reads == "[T, 256]");
  CHECK(steps[4].reads == "[T, 256]");
  CHECK(steps[4].writes == "[T, 4, 256]");
  CHECK(steps[4].parameters == 0);
  const std::vector<Stage> gated =
      layer_steps(Transformer(with([](ModelConfig& c) { c.residual = "gated", c.residual_rank = 8; })), 0);
  CHECK(gated[1].parameters == 4 * 256 + 2 * 8 * 4 * 256);
  CHECK(gated[3].parameters == 4 * 4 * 256);
}

namespace {

/// The parts of layer 0 that made the nodes of a forward pass, each as often as its turn came.
Names parts_on_tape(const Transformer& model) {
  const std::string_view layer = "model.layers.0.";
  Tape tape({.record = false, .retain = true});
  model.trace(tape, std::vector<int32_t>{1, 2, 3}, 1);
  Names parts;
  for (NodeId id = 0; id < tape.size(); ++id) {
    std::string_view scope = tape.node(id).scope;
    if (scope.starts_with(layer)) {
      scope.remove_prefix(layer.size());
      const std::string part(scope.substr(0, scope.find('.')));
      if (parts.empty() || parts.back() != part) {
        parts.push_back(part);
      }
    }
  }
  return parts;
}

/// The same as the steps tell it.
Names parts_of_steps(const Transformer& model) {
  Names parts;
  bool is_second = false;
  for (const Stage& step : layer_steps(model, 0)) {
    const bool is_mixer = step.name.starts_with("token mixer");
    if (step.name == "norm") {
      parts.emplace_back(is_second ? "post_attention_layernorm" : "input_layernorm");
    } else if (is_mixer || step.name == "FFN") {
      parts.emplace_back(is_mixer ? "self_attn" : "mlp");
    } else if (step.name == "read" || step.name == "write" || step.name == "add") {
      parts.emplace_back(is_second ? "mlp_residual" : "attention_residual");
    }
    is_second = is_second || step.name == "write" || step.name.ends_with("add") || step.name == "keep";
  }
  return parts;
}

}  // namespace

TEST_CASE("the steps are those of the tape, in its order") {
  const auto changes = {
      +[](ModelConfig&) {},
      +[](ModelConfig& c) { c.residual = "mhc"; },
      +[](ModelConfig& c) { c.residual = "mhc", c.norm_position = "sublayer_output"; },
      +[](ModelConfig& c) { c.residual = "gated"; },
      +[](ModelConfig& c) { c.residual = "attnres"; },
      +[](ModelConfig& c) { c.residual = "none"; },
  };
  for (const auto change : changes) {
    ModelConfig config = with([](ModelConfig& c) { c.d_model = 16, c.n_heads = 2, c.d_ff = 24, c.n_layers = 1; });
    change(config);
    derive(config, 0, 256);
    Transformer model(config);
    model.allocate(DType::float64, 1, false);
    CAPTURE(config.residual);
    CHECK(parts_on_tape(model) == parts_of_steps(model));
  }
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
