// Lints: each fires on what it names and is silent beside it.

#include "train/lint.h"

#include "data/synthetic.h"
#include "tests/set_weights.h"
#include "train/evaluate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

using namespace minillm;
using minillm::test::set_weights;

namespace {

Config base() {
  Config config;
  config.model.vocab_size = 64;
  config.model.d_model = 32;
  config.model.n_heads = 4;
  config.model.d_ff = 96;
  config.data.seq_len = 32;
  return config;
}

Config complete(Config config) {
  derive(config.model, 0, config.data.seq_len);
  return config;
}

std::vector<std::string> ids(const std::vector<Finding>& findings) {
  std::vector<std::string> found;
  for (const Finding& finding : findings) {
    found.emplace_back(finding.rule->id);
  }
  return found;
}

bool has(const std::vector<Finding>& findings, std::string_view id) {
  const std::vector<std::string> found = ids(findings);
  return std::find(found.begin(), found.end(), id) != found.end();
}

std::vector<Finding> lints_of(const Config& config) {
  return lint_config(config);
}

}  // namespace

TEST_CASE("a plain config has no lints") {
  const std::vector<Finding> findings = lints_of(complete(base()));
  CAPTURE(ids(findings).size());
  CHECK(findings.empty());
}

TEST_CASE("each lint of a config fires on its setting and not beside it") {
  struct Row {
    const char* id;
    std::function<void(Config&)> wrong;
    std::function<void(Config&)> right;
  };
  const auto post = [](Config& c) { c.model.norm_position = "post"; };
  const Row rows[] = {
      {"E01", [](Config& c) { c.model.residual = "none"; },
       [](Config& c) { c.model.residual = "none", c.model.n_layers = 1; }},
      {"E06", [=](Config& c) { post(c), c.optim.lr = 3e-3; }, [=](Config& c) { post(c), c.optim.lr = 2.9e-3; }},
      {"E06", [=](Config& c) { post(c), c.optim.warmup_steps = 99; },
       [=](Config& c) { post(c), c.optim.warmup_steps = 99, c.optim.lr = 9e-4; }},
      {"E11", [](Config& c) { c.model.d_ff = 128; }, [](Config& c) { c.model.ffn = "gelu", c.model.d_ff = 128; }},
      {"E12", [](Config& c) { c.model.d_ff = 90; }, [](Config& c) { c.model.d_ff = 112; }},
      {"E13", [](Config& c) { c.optim.decay_norms = true; },
       [](Config& c) { c.optim.decay_norms = true, c.model.norm = "zero_centered_rmsnorm"; }},
      {"E13",
       [](Config& c) {
         c.optim.decay_norms = true, c.model.norm = "zero_centered_rmsnorm", c.model.attention = "hybrid";
       },
       [](Config& c) { c.optim.decay_norms = true, c.model.norm = "none"; }},
      {"E13", [](Config& c) { c.optim.decay_norms = true, c.model.norm = "none", c.model.qk_norm = true; },
       [](Config& c) { c.model.norm = "none", c.model.qk_norm = true; }},
      {"E13", [](Config& c) { c.optim.decay_norms = true, c.model.residual = "gated"; },
       [](Config& c) { c.optim.decay_norms = true, c.model.residual = "gated", c.model.final_norm = 0; }},
      {"E42", [](Config& c) { c.model.attention = "mla"; },
       [](Config& c) { c.model.attention = "mla", c.model.rope_fraction = 0.5; }},
      {"E19", [](Config& c) { c.model.final_norm = 0; }, post},
      {"E19", [](Config& c) { c.model.final_norm = 0; },
       [](Config& c) { c.model.final_norm = 0, c.model.norm = "none"; }},
      {"E04", [](Config& c) { c.model.norm = "batchnorm"; }, [](Config& c) { c.model.norm = "layernorm"; }},
      {"E20", [](Config& c) { c.model.residual_out_init = "plain"; },
       [=](Config& c) { post(c), c.model.residual_out_init = "plain"; }},
      {"E20", [](Config& c) { c.model.residual_out_init = "plain"; },
       [](Config& c) { c.model.residual_out_init = "plain", c.model.ffn = "none"; }},
      {"E20", [](Config& c) { c.model.residual_out_init = "plain"; },
       [](Config& c) { c.model.residual_out_init = "plain", c.model.n_layers = 3; }},
      {"E30", [](Config& c) { c.release.stated_parameters = 1e6; },
       [](Config& c) { c.release.stated_parameters = 55e3; }},
      {"E32", [](Config& c) { c.model.ffn = "none", c.model.n_layers = 5; }, [](Config& c) { c.model.ffn = "none"; }},
      {"E35", [=](Config& c) { post(c), c.model.n_layers = 13; }, [=](Config& c) { post(c), c.model.n_layers = 12; }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.id);
    Config wrong = base();
    row.wrong(wrong);
    CHECK(has(lints_of(complete(wrong)), row.id));
    Config right = base();
    row.right(right);
    CHECK_FALSE(has(lints_of(complete(right)), row.id));
    wrong.run.silence = row.id;
    CHECK_FALSE(has(audible(lints_of(complete(wrong)), wrong), row.id));
  }
}

TEST_CASE("a stated size is told beside the counted one, larger or smaller") {
  Config config = complete(base());
  const auto counted = static_cast<double>(Transformer(config.model).parameters().count());
  for (const auto& [factor, text] : {std::pair(0.5, ", 2 times that"), std::pair(4.0, ", 0.25 times that")}) {
    config.release.stated_parameters = factor * counted;
    REQUIRE(has(lints_of(config), "E30"));
    CHECK(lints_of(config).back().what.find(text) != std::string::npos);
  }
}

TEST_CASE("only lints that exist and are no errors can be silenced") {
  CHECK(fault_of_silence("").empty());
  CHECK(fault_of_silence("E12, E20 E01").empty());
  CHECK(fault_of_silence("E12, E99").find("E99") == 0);
  CHECK(fault_of_silence("E09").find("is an error") != std::string::npos);
}

TEST_CASE("ids are unique and in order") {
  const std::span<const LintRule> rules = lint_rules();
  for (size_t i = 1; i < rules.size(); ++i) {
    CHECK(rules[i - 1].id < rules[i].id);
  }
}

TEST_CASE("lints of counts") {
  Config config = base();
  config.release.causal_masks = true;
  config.model.ffn = "moe";
  config.model.moe_experts = 4;
  config = complete(config);
  const Ledger ledger = make_ledger(Transformer(config.model), config.release);
  const auto crossover = static_cast<int64_t>(ledger.crossover_context());
  CHECK(has(lint_ledger(config, ledger, crossover + 1), "E27"));
  CHECK_FALSE(has(lint_ledger(config, ledger, crossover), "E27"));
  for (const char* id : {"E25", "E26", "E28", "E29", "E31"}) {
    CAPTURE(id);
    CHECK(has(lint_ledger(config, ledger, 0), id));
  }
  Config classic = base();
  classic.model.ffn = "gelu";
  classic.model.d_ff = 128;
  classic = complete(classic);
  const Ledger of_classic = make_ledger(Transformer(classic.model), classic.release);
  for (const char* id : {"E25", "E26", "E29"}) {
    CAPTURE(id);
    CHECK_FALSE(has(lint_ledger(classic, of_classic, 0), id));
  }
}

TEST_CASE("lints of metrics") {
  Metrics metrics;
  for (int64_t step = 0; step < 40; ++step) {
    metrics.train.push_back({.step = step, .loss = 4, .grad_norm = step == 7 ? 10.5 : 1.0});
  }
  metrics.evaluations = {{.step = 20, .val_loss = 3.0}, {.step = 40, .val_loss = 3.04}};
  const std::vector<Finding> surge = lint_metrics(metrics, summarize(metrics, 2));
  CHECK(ids(surge) == std::vector<std::string>{"E08"});
  CHECK(surge.front().what.find("10.5 at step 7") != std::string::npos);
  metrics.train[7].grad_norm = 9.5;
  CHECK(lint_metrics(metrics, summarize(metrics, 2)).empty());
  CHECK(ids(lint_metrics(metrics, summarize(metrics, 3.0))) == std::vector<std::string>{"E07"});
  metrics.train[30].loss = 5.5;
  CHECK(ids(lint_metrics(metrics, summarize(metrics, 2))) == std::vector<std::string>{"E09"});
}

namespace {

/// The lints of a model's weights after `change`, on the built-in corpus.
std::vector<Finding> lints_of_weights(const Config& config, const std::function<void(Transformer&)>& change) {
  const TokenFile data = open_data("synthetic");
  Transformer model(config.model);
  model.allocate(DType::float32, 1, false);
  change(model);
  return lint_weights(model, validation_windows(data.val, config.data)).findings;
}

/// Multiplies every tensor whose name ends so.
void scale(const Transformer& model, std::string_view ending, double factor) {
  set_weights(model, ending, [=](int64_t, double was) { return factor * was; });
}

}  // namespace

TEST_CASE("lints of weights") {
  const Config config = complete(base());
  const auto nothing = [](Transformer&) {};
  CHECK(lints_of_weights(config, nothing).empty());
  CHECK(has(lints_of_weights(config, [](Transformer& model) { scale(model, "norm.weight", 0.4); }), "E14"));
  CHECK_FALSE(has(lints_of_weights(config, [](Transformer& model) { scale(model, "norm.weight", 0.6); }), "E14"));
  CHECK(has(lints_of_weights(config, [](Transformer& model) { scale(model, "layers.3.mlp.down_proj.weight", 3000); }),
            "E21"));
  CHECK(has(lints_of_weights(config, [](Transformer& model) { scale(model, "up_proj.weight", 1e5); }), "E22"));
  Config gated = base();
  gated.model.residual = "gated";
  CHECK_FALSE(has(lints_of_weights(complete(gated), nothing), "E14"));
  Config batch = base();
  batch.model.norm = "batchnorm";
  CHECK(has(lints_of_weights(complete(batch), nothing), "E05"));
  // Small queries and keys attend evenly; without a residual connection and an FFN tokens become alike.
  Config alike = base();
  alike.model.residual = "none";
  alike.model.ffn = "none";
  alike.model.n_layers = 12;
  CHECK(has(lints_of_weights(complete(alike), nothing), "E02"));
}

TEST_CASE("experts that get everything, and a first token that does") {
  Config config = base();
  config.model.ffn = "moe";
  config.model.d_ff = 16;
  config.model.moe_experts = 8;
  config.model.moe_top_k = 1;
  config = complete(config);
  const std::vector<Finding> uneven = lints_of_weights(config, [](Transformer& model) {
    scale(model, "layers.1.mlp.router.weight", 0);  // equal scores: the first expert is chosen
  });
  REQUIRE(has(uneven, "E41"));
  CHECK(uneven.back().what.find("in layer 1 one of 8 experts gets 100.0 % of the choices, another 0.0 %") == 0);
  CHECK_FALSE(
      has(lints_of_weights(complete(base()), [](Transformer& model) { scale(model, "q_proj.weight", 0); }), "E23"));
  Config sink = base();
  sink.model.position = "learned";
  const std::vector<Finding> sunk = lints_of_weights(complete(sink), [](Transformer& model) {
    // The first position is large in channel 0, the others a little: there alone keys are large.
    set_weights(model, "embed_positions.weight", [](int64_t i, double) {
      return i == 0 ? 100.0 : i % 32 == 0 ? 0.02 : 0.0;
    });
    for (const char* matrix : {"q_proj.weight", "k_proj.weight"}) {
      set_weights(model, matrix, [](int64_t i, double) { return i % 32 == 0 ? 3.0 : 0.0; });
    }
  });
  REQUIRE(has(sunk, "E23"));
}

TEST_CASE("a report of gates says of those by SiLU that they are no share of open") {
  const auto found = [](const std::function<void(ModelConfig&)>& change) {
    Config config = base();
    change(config.model);
    config = complete(config);
    const TokenFile data = open_data("synthetic");
    Transformer model(config.model);
    model.allocate(DType::float32, 1, false);
    return lint_gates(config.model, lint_weights(model, validation_windows(data.val, config.data)).layers);
  };
  const std::vector<Finding> swiglu = found([](ModelConfig&) {});
  REQUIRE(ids(swiglu) == std::vector<std::string>{"E15"});
  CHECK(swiglu.front().what.find("the FFN's gate is below 0 for ") != std::string::npos);
  CHECK(ids(found([](ModelConfig& m) { m.ffn = "situ_glu"; })) == std::vector<std::string>{"E15"});
  for (const char* ffn : {"glu", "geglu", "gelu", "none"}) {
    CAPTURE(ffn);
    CHECK(found([=](ModelConfig& m) { m.ffn = ffn, m.attention_gate = "elementwise"; }).empty());
  }
  const std::vector<Finding> gated = found(
      [](ModelConfig& m) { m.ffn = "gelu", m.attention_gate = "elementwise", m.attention_gate_activation = "silu"; });
  REQUIRE(ids(gated) == std::vector<std::string>{"E15"});
  CHECK(gated.front().what.find("the mixer's gate is below 0 for ") != std::string::npos);
  // Of a mix only linear layers have a gate by SiLU, the last layer's is a sigmoid.
  const std::vector<Finding> mixed =
      found([](ModelConfig& m) { m.ffn = "gelu", m.attention = "hybrid", m.attention_gate = "elementwise"; });
  REQUIRE(ids(mixed) == std::vector<std::string>{"E15"});
  CHECK(found([](ModelConfig& m) { m.ffn = "gelu", m.attention = "hybrid", m.gdn_gate = "sigmoid"; }).empty());
}

TEST_CASE("dead units are those that are 0 for every token") {
  Config config = base();
  config.model.ffn = "relu";
  config.model.bias = true;
  config = complete(config);
  const auto kill = [](int64_t units) {
    return [=](Transformer& model) {
      set_weights(model, "layers.2.mlp.up_proj.bias", [=](int64_t i, double was) { return i < units ? -100.0 : was; });
    };
  };
  const std::vector<Finding> findings = lints_of_weights(config, kill(12));
  REQUIRE(has(findings, "E33"));
  CHECK(findings.back().what.find("12.5 % of the units of layer 2") != std::string::npos);
  CHECK_FALSE(has(lints_of_weights(config, kill(9)), "E33"));
}
