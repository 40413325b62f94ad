// A value that is not finite is planted in many places, and named.

#include "train/nan_trace.h"

#include "autograd/op_support.h"
#include "core/tensor.h"
#include "nn/transformer.h"
#include "tests/small_model.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string_view>

using namespace minillm;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

using Change = std::function<void(ParameterStore&)>;

void set_first(ParameterStore& parameters, std::string_view name, double value) {
  for (const NamedTensor& tensor : parameters.named_tensors()) {
    if (tensor.name == name) {
      tensor.value.set(0, value);
      return;
    }
  }
  FAIL("no weight ", name);
}

void scale_all(ParameterStore& parameters, std::string_view name, double factor) {
  for (const NamedTensor& tensor : parameters.named_tensors()) {
    for (int64_t i = 0; tensor.name == name && i < tensor.value.numel(); ++i) {
      tensor.value.set(i, factor * tensor.value.at(i));
    }
  }
}

/// Of one pass of a small model whose weights were changed.
std::optional<Birthplace> trace(ModelConfig config, Ops ops, const Change& change) {
  derive(config, 0, 20);
  Transformer model(config);
  model.allocate(DType::float32, 1);
  change(model.parameters());
  Tape tape({.ops = ops, .retain = true});
  Var loss = model.forward(tape, small_batch(20, config.vocab_size));
  if (std::optional<Birthplace> place = value_birthplace(tape, loss)) {
    return place;
  }
  tape.backward(loss);
  return gradient_birthplace(tape);
}

/// Of an op on one tensor of four doubles, its results added up.
std::optional<Birthplace> trace_op(const std::vector<double>& values, const std::function<Var(Var)>& op) {
  const Buffer buffer({4}, DType::float64);
  for (size_t i = 0; i < 4; ++i) {
    buffer.tensor().set(static_cast<int64_t>(i), values[i]);
  }
  Tape tape({.retain = true});
  Var loss = sum_all(op(tape.variable(buffer.tensor())));
  if (std::optional<Birthplace> place = value_birthplace(tape, loss)) {
    return place;
  }
  tape.backward(loss);
  return gradient_birthplace(tape);
}

struct BrokenNode final : Node {
  void backward(Tape&) override {}
};

/// An op whose kernel writes a NaN.
Var broken(Var x) {
  auto& node = x.tape().make<BrokenNode>("broken", {x}, x.shape(), x.dtype(), {});
  copy_values(x.value(), node.value);
  node.value.set(2, NAN);
  return x.tape().var(node);
}

constexpr const char* down = "model.layers.1.mlp.down_proj.weight";

}  // namespace

TEST_CASE("weights that are not finite are named, in every part and on both paths") {
  for (const Ops ops : {Ops::fused, Ops::composed}) {
    for (const double value : {static_cast<double>(NAN), infinity, -infinity}) {
      for (const char* name : {"model.embed_tokens.weight", "model.layers.0.input_layernorm.weight", down,
                               "model.layers.0.self_attn.v_proj.weight", "model.norm.weight"}) {
        CAPTURE(name);
        CAPTURE(value);
        const auto place = trace(small_model(50, 32), ops, [&](ParameterStore& p) { set_first(p, name, value); });
        REQUIRE(place.has_value());
        CHECK(place->pass == Pass::forward);
        CHECK(place->op == "parameter");
        const std::string scope = place->scope;  // q, k and v are one parameter, as gate and up are
        CHECK((scope == name || scope == "model.layers.0.self_attn.qkv_proj.weight"));
        CHECK(place->operands.empty());
        CHECK(birthplace_text(*place).find("it was so before this pass") != std::string::npos);
      }
    }
  }
}

TEST_CASE("attention scores that overflow are named as the product they come from") {
  const auto place = trace(small_model(50, 32), Ops::composed, [](ParameterStore& p) {
    scale_all(p, "model.layers.1.self_attn.q_proj.weight", 1e22);
    scale_all(p, "model.layers.1.self_attn.k_proj.weight", 1e22);
  });
  REQUIRE(place.has_value());
  CHECK(place->op == "matmul");
  CHECK(place->scope == "model.layers.1.self_attn");
  REQUIRE(place->operands.size() == 2);
  CHECK(place->operands[0].elements.not_finite == 0);
  CHECK(place->operands[0].elements.largest > 1e20);
}

TEST_CASE("a product that overflows in the feed-forward network is named with its layer") {
  const auto place = trace(small_model(50, 32), Ops::fused, [](ParameterStore& p) {
    scale_all(p, "model.layers.1.mlp.up_proj.weight", 1e25);
    scale_all(p, down, 1e25);
  });
  REQUIRE(place.has_value());
  CHECK(place->op == "linear");
  CHECK(place->scope == "model.layers.1.mlp.down_proj");
  CHECK(std::isinf(place->value));
}

TEST_CASE("ops that leave their domain are named with their operand") {
  const auto of_log = trace_op({1, 2, -3, 4}, [](Var x) { return exp(log(scale(x, 2))); });
  REQUIRE(of_log.has_value());
  CHECK(of_log->op == "log");
  CHECK(of_log->index == 2);
  CHECK(std::isnan(of_log->value));
  CHECK(of_log->operands.at(0).elements.least == -6);
  CHECK(of_log->operands.at(0).elements.mean == 2);
  const auto of_exp = trace_op({1, 800, 2, 3}, [](Var x) { return sub(exp(x), exp(x)); });  // NaN only in sub
  REQUIRE(of_exp.has_value());
  CHECK(of_exp->op == "exp");
  CHECK(of_exp->value == infinity);
  const auto of_div = trace_op({1, 0, 2, 3}, [](Var x) { return div(x, x); });
  REQUIRE(of_div.has_value());
  CHECK(of_div->op == "div");
  const auto of_kernel = trace_op({1, 2, 3, 4}, [](Var x) { return scale(broken(scale(x, 2)), 3); });
  REQUIRE(of_kernel.has_value());
  CHECK(of_kernel->op == "broken");
  CHECK(of_kernel->index == 2);
}

TEST_CASE("a gradient that is not finite is named as the backward that made it") {
  const auto place = trace_op({1, 4, 0, 9}, [](Var x) { return scale(sqrt(scale(x, 1)), 2); });
  REQUIRE(place.has_value());
  CHECK(place->pass == Pass::backward);
  CHECK(place->op == "sqrt");
  CHECK(place->index == 2);
  CHECK(place->operands.at(0).name == "gradient of its result");
  CHECK(place->operands.at(0).elements.largest == 2);
  CHECK(place->operands.at(1).elements.least == 0);
}

TEST_CASE("what is finite has no birthplace, masks of -infinity or not") {
  for (const Ops ops : {Ops::fused, Ops::composed}) {
    ModelConfig config = small_model(50, 32);
    CHECK(!trace(config, ops, [](ParameterStore&) {}).has_value());
    config.attention = "gdn";  // masks its decays
    CHECK(!trace(config, ops, [](ParameterStore&) {}).has_value());
    const auto planted = trace(config, ops, [](ParameterStore& p) { set_first(p, down, NAN); });
    REQUIRE(planted.has_value());
    CHECK(planted->scope == down);
  }
}
