#include "train/bench.h"

#include "autograd/op_phase.h"
#include "autograd/ops.h"
#include "core/fma_peak.h"
#include "core/memory.h"
#include "core/tensor.h"
#include "nn/ledger.h"
#include "tests/small_model.h"
#include "tests/support/message_of.h"
#include "train/complete_config.h"
#include "train/memory_estimate.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

using namespace minillm;
using namespace minillm::test;

namespace {

LoadedConfig small_config() {
  return parse_config(
      "[model]\nvocab_size = 300\nd_model = 64\nn_layers = 2\nn_heads = 4\nd_ff = 96\nqk_norm = true\n"
      "[data]\nseq_len = 64\n[train]\nbatch_size = 4\nmicro_batch_size = 2\nsteps = 1\n[optim]\nwarmup_steps = 1\n",
      "small.toml");
}

MemoryEstimate estimate_of(const std::string& text) {
  LoadedConfig loaded = parse_config(text, "r.toml");
  complete_config(loaded, nullptr);
  return estimate_memory(Transformer(loaded.config.model), loaded.config);
}

double of(const std::array<double, phase_count>& values, Phase phase) {
  return values[static_cast<size_t>(phase)];
}

/// Names of the ops on a tape that holds one forward pass.
std::set<std::string> ops_of(ModelConfig config, const TapeOptions& options) {
  constexpr int64_t T = 8;
  derive(config, 0, T);
  Transformer model(config);
  model.allocate(DType::float32, 1);
  const Batch batch = small_batch(T, config.vocab_size);
  Tape tape(options);
  model.forward(tape, batch);
  std::set<std::string> ops;
  for (NodeId id = 0; id < tape.size(); ++id) {
    ops.insert(tape.node(id).op);
  }
  return ops;
}

/// The most that a tape held in one forward and backward pass; fills `estimate` with the formula.
double peak_of(const ModelConfig& model_config, Ops ops, int64_t T, MemoryEstimate& estimate) {
  Config config;
  config.model = model_config;
  config.data.seq_len = T;
  config.train.micro_batch_size = 2;
  config.train.ops = ops == Ops::composed ? "composed" : "fused";
  derive(config.model, 0, T);
  Transformer model(config.model);
  model.allocate(DType::float32, 1);
  estimate = estimate_memory(model, config);
  const Batch batch = small_batch(T, config.model.vocab_size);
  Tape tape(TapeOptions{.ops = ops});
  tape.backward(model.forward(tape, batch));
  return static_cast<double>(tape.peak_bytes());
}

/// Models that use every op between them.
std::vector<ModelConfig> models_with_every_op() {
  std::vector<ModelConfig> configs;
  for (const char* ffn : {"swiglu", "geglu", "reglu", "gelu", "gelu_tanh", "relu", "none"}) {
    configs.push_back(small_model(50, 16));
    configs.back().ffn = ffn;
  }
  configs[0].norm = "zero_centered_rmsnorm";
  configs[0].attention_gate = "elementwise";
  configs[1].norm = "layernorm";
  configs[1].position = "learned";
  configs[1].bias = true;
  configs[2].qk_norm = true;
  configs[2].n_kv_heads = 2;
  configs[3].dropout = 0.1;
  configs[3].position = "sinusoidal";
  configs[4].residual = "none";
  configs[4].tie_embeddings = false;
  configs[5].norm_position = "sublayer_output";
  configs[6].position = "none";
  return configs;
}

}  // namespace

TEST_CASE("a benchmark's phases sum to its step, and each has its time") {
  int watched = 0;
  const BenchResult result = bench(small_config(), {.warmup_steps = 2, .steps = 5}, [&](const auto& step) {
    step();
    ++watched;
  });
  CHECK(watched == 1);
  CHECK(std::accumulate(result.phases.begin(), result.phases.end(), 0.0) == doctest::Approx(result.step_seconds));
  for (size_t i = 0; i < phase_count; ++i) {
    CAPTURE(name_of(static_cast<Phase>(i)));
    CHECK(result.phases[i] > 0);
  }
  CHECK(result.tokens_per_step == 256);
  CHECK(result.tokens_per_second() == doctest::Approx(256 / result.step_seconds));
  CHECK(result.last_loss == doctest::Approx(5.7).epsilon(0.05));  // near ln 300
  CHECK(result.peak_memory_bytes > result.memory_before_bytes);
  CHECK(result.arena_bytes > 0);
}

TEST_CASE("a benchmark's operations are the ledger's") {
  LoadedConfig loaded = small_config();
  const BenchResult result = bench(loaded, {.warmup_steps = 1, .steps = 1});
  complete_config(loaded, nullptr);
  const Ledger ledger = make_ledger(Transformer(loaded.config.model));
  CHECK(result.parameters == ledger.parameters);
  CHECK(result.flops == 256.0 * static_cast<double>(ledger.flops_per_token));
  const double products = of(result.phase_flops, Phase::gemm_forward) + of(result.phase_flops, Phase::gemm_dx) +
                          of(result.phase_flops, Phase::gemm_dw);
  CHECK(products + of(result.phase_flops, Phase::attention) == doctest::Approx(result.flops));
  CHECK(result.has_peak() == (fma_peak_gflops() > 0));
  CHECK((result.mfu() > 0) == result.has_peak());
}

TEST_CASE("phases that composed ops do not tell apart are not told") {
  LoadedConfig loaded = small_config();
  loaded.config.train.ops = "composed";
  const BenchResult result = bench(loaded, {.warmup_steps = 1, .steps = 1});
  for (size_t i = 0; i < phase_count; ++i) {
    const Phase phase = static_cast<Phase>(i);
    CAPTURE(std::string(name_of(phase)));
    CHECK(std::isnan(result.phases[i]) == (phase != Phase::optimizer && phase != Phase::other));
  }
  CHECK(of(result.phases, Phase::optimizer) + of(result.phases, Phase::other) == doctest::Approx(result.step_seconds));
}

TEST_CASE("a benchmark that does not fit the machine's memory is refused before it takes any") {
  const auto refusal = [](const std::string& text) {
    return message_of(Fault::input, [&] { bench(parse_config(text, "r.toml"), {.warmup_steps = 1, .steps = 1}); });
  };
  const std::string window = "[data]\nseq_len = 2000000000\n[train]\nbatch_size = 1\n[model]\nn_layers = 1\n";
  if (physical_memory() > 1e12) {
    return;
  }
  CHECK_CONTAINS(refusal("[model]\nd_model = 65536\nd_ff = 262144\nn_layers = 12\n"),
                 "[model]: weights, gradients, the optimizer's two moments and the table of positions do not fit this "
                 "machine's memory; found 13.2 TB; expected at most ");
  CHECK_CONTAINS(refusal(window + "position = \"sinusoidal\""), "found 2.05 TB");
  CHECK_CONTAINS(refusal(window + "position = \"none\""), "data.seq_len: the values of the layers that backward needs");
  // Of a model so narrow that its values need less than 64 windows of tokens.
  const int64_t fitting = static_cast<int64_t>(physical_memory() / 200);
  CHECK_CONTAINS(refusal(fmt::format("[data]\nseq_len = {}\n[train]\nbatch_size = 1\n[model]\nn_layers = 1\nd_model = "
                                     "2\nn_heads = 1\nffn = \"none\"\nposition = \"none\"",
                                     fitting)),
                 "data.seq_len: the tokens do not fit this machine's memory beside the model");
}

TEST_CASE("a benchmark takes the vocabulary of its data, or one of its own without data") {
  const std::string small = "[model]\nd_model = 16\nn_layers = 1\nn_heads = 2\nd_ff = 24\n";
  const BenchOptions one_step = {.warmup_steps = 1, .steps = 1};
  const BenchResult random = bench(parse_config(small + "[data]\nseq_len = 16\n", "r.toml"), one_step);
  CHECK(random.last_loss == doctest::Approx(std::log(bench_vocab_size)).epsilon(0.05));
  LoadedConfig loaded = parse_config(small + "[data]\nseq_len = 16\npath = \"synthetic\"\n", "s.toml");
  const BenchResult synthetic = bench(loaded, one_step);
  const TokenFile data = open_data("synthetic");
  CHECK(random.parameters - synthetic.parameters == 16 * (bench_vocab_size - data.vocab_size));
}

TEST_CASE("every op that a model is made of is counted in a phase, or is one that belongs to the rest") {
  // Leaves, copies, the residual stream, and the primitives that composed ops are made of.
  const std::set<std::string> others = {
      "parameter", "constant", "embedding", "dropout", "reshape",    "slice", "concat", "transpose", "add",
      "sub",       "mul",      "div",       "scale",   "add_scalar", "pow",   "exp",    "log",       "sqrt",
      "tanh",      "sigmoid",  "erf",       "sum",     "mean",       "max",   "maximum"};
  std::set<std::string> seen;
  for (const ModelConfig& config : models_with_every_op()) {
    for (const TapeOptions& options :
         {TapeOptions{}, TapeOptions{.kernels = Kernels::reference}, TapeOptions{.ops = Ops::composed}}) {
      seen.merge(ops_of(config, options));
    }
  }
  for (const std::string& op : seen) {
    CAPTURE(op);
    CHECK((phase_of(op) != Phase::other) != (others.count(op) == 1));
  }
  for (const char* op : {"linear", "causal_attention", "attention_gate", "rope", "qk_norm", "rmsnorm", "layernorm",
                         "swiglu", "gelu", "linear_cross_entropy", "cross_entropy", "matmul"}) {
    CAPTURE(op);
    CHECK(seen.count(op) == 1);
  }
}

TEST_CASE("the gradient of a bias is counted with that of its weight") {
  const Buffer x({64, 8}, DType::float32);
  const Buffer weight({16, 8}, DType::float32);
  const Buffer bias({16}, DType::float32);
  Tape tape;
  const Var y = linear(tape.constant(x.tensor()), tape.constant(weight.tensor()), tape.variable(bias.tensor()));
  const Var loss = sum_all(y);
  PhaseClock clock;
  tape.backward(loss);
  CHECK(of(clock.take(), Phase::gemm_dw) > 0);
}

TEST_CASE("memory by formula: the reference model at B4 T256") {
  const MemoryEstimate estimate = estimate_of("[model]\nvocab_size = 2048\n[train]\nbatch_size = 4\n");
  CHECK(estimate.state == 16 * 3688704);
  CHECK(estimate.position_table == 4.0 * 256 * 32);
  CHECK(estimate_of("[model]\nvocab_size = 2048\nposition = \"sinusoidal\"\n").position_table == 4.0 * 256 * 256);
  CHECK(estimate.activations == 4.0 * 1024 * 4 * 2912);
  CHECK(estimate.workspace == 4.0 * (1024 * 3088 + 512 * 2064));  // 512 rows of logits are a chunk
  CHECK(estimate.total() == 16.0 * 3688704 + 4.0 * 256 * 32 + estimate.activations + estimate.workspace);
}

TEST_CASE("memory by formula: a chunk of logits has at most 1,024 rows, and no more than there are") {
  const std::string model = "[model]\nvocab_size = 64\nn_layers = 1\n[data]\nseq_len = 256\n[train]\nbatch_size = ";
  const auto logits = [&](const std::string& rest, double tokens) {
    return estimate_of(model + rest).workspace / 4 - tokens * 3088;
  };
  CHECK(logits("1\n", 256) == 256 * 80);
  CHECK(logits("8\n", 2048) == 1024 * 80);
  CHECK(logits("8\nmicro_batch_size = 2\n", 512) == 512 * 80);
  CHECK(logits("8\nops = \"composed\"\n", 2048) == 2048 * 64);  // there all logits stand in memory
  CHECK(logits("8\nkernels = \"reference\"\n", 2048) == 2048 * 64);
}

TEST_CASE("memory by formula: what composed ops hold is what their tape takes, and never more") {
  for (const ModelConfig& config : models_with_every_op()) {
    CAPTURE(config.ffn);
    for (const int64_t T : {16, 256}) {
      CAPTURE(T);
      MemoryEstimate estimate;
      const double peak = peak_of(config, Ops::composed, T, estimate);
      CHECK(estimate.held() <= peak);
      CHECK(estimate.held() > (T == 256 ? 0.8 : 0.4) * peak);
    }
  }
}

TEST_CASE("memory by formula: whatever a model is made of, its tape takes at least that") {
  const auto changes = {
      +[](ModelConfig&) {},
      +[](ModelConfig& c) { c.attention = "mla", c.rope_fraction = 0.5, c.attention_gate = "elementwise"; },
      +[](ModelConfig& c) { c.attention = "hybrid"; },
      +[](ModelConfig& c) { c.attention = "gdn"; },
      +[](ModelConfig& c) { c.attention = "gdn", c.gdn_form = "recurrent"; },
      +[](ModelConfig& c) { c.ffn = "moe"; },
      +[](ModelConfig& c) { c.residual = "mhc"; },
      +[](ModelConfig& c) { c.residual = "gated"; },
      +[](ModelConfig& c) { c.residual = "attnres"; },
      +[](ModelConfig& c) { c.attention_gate = "headwise"; },
      +[](ModelConfig& c) { c.causal = false; },
  };
  int row = 0;
  for (const auto change : changes) {
    ++row;
    CAPTURE(row);
    for (const Ops ops : {Ops::fused, Ops::composed}) {
      ModelConfig config = small_model(50, 16);
      change(config);
      MemoryEstimate estimate;
      const double peak = peak_of(config, ops, 64, estimate);
      printf("%d %.3f\n", row, estimate.held() / peak);
      CHECK(estimate.held() <= peak);
      CHECK(estimate.held() > 0.05 * peak);
    }
  }
}

TEST_CASE("memory by formula: composed attention holds the scores of every layer, which fused attention never has") {
  const std::string large = "[model]\nvocab_size = 2048\n[data]\nseq_len = 4096\n[train]\nbatch_size = 16\n";
  CHECK(estimate_of(large).composed == 0);
  const double scores = 4.0 * 16 * 8 * 4096 * 4096;
  const double mask = 4.0 * 4096 * 4096;
  const double a_token = 6 * 256 + 2 * 768 + 256 + 2 * 768 + 16 * (8 * 16 + 32) + 5 * 688;
  CHECK(estimate_of(large + "ops = \"composed\"\n").composed ==
        4 * (4 * scores + mask + 4.0 * 16 * 4096 * a_token) + 2 * scores);
  if (physical_memory() > 1e11 || physical_memory() < 4e9) {
    return;
  }
  const std::string refusal = message_of(Fault::input, [&] {
    bench(parse_config(large + "ops = \"composed\"\n", "r.toml"), {.warmup_steps = 1, .steps = 1});
  });
  CHECK_CONTAINS(refusal, "train.micro_batch_size: the values of the layers that backward needs do not fit");
  CHECK_CONTAINS(refusal, "; found 169 GB for 16 x 4096 tokens; expected at most ");
  CHECK_CONTAINS(refusal, "; train.ops = \"fused\" keeps no scores and needs 3.05 GB; a smaller ");
}

TEST_CASE("an import takes its weights and the largest tensor once more") {
  // All but a thousandth of the weights is one tensor, six tenths of the memory.
  ModelConfig config = small_model(static_cast<int64_t>(0.6 * physical_memory() / 256), 64);
  config.position = "none";
  derive(config, 0, 16);
  const Transformer model(config);
  check_weights_fit(model, DType::float32, "w.bin");
  CHECK_CONTAINS(message_of(Fault::input, [&] { check_import_fits(model, "w.bin"); }),
                 "w.bin: the weights, and the largest tensor beside them to be compared, do not fit this machine's "
                 "memory; found ");
  config.vocab_size /= 2;
  check_import_fits(Transformer(config), "w.bin");
}
