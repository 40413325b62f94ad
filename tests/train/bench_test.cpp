#include "train/bench.h"

#include "autograd/op_phase.h"
#include "core/parallel.h"
#include "nn/ledger.h"
#include "train/complete_config.h"
#include "train/memory_estimate.h"

#include <doctest/doctest.h>

#include <numeric>

using namespace minillm;

namespace {

Config small_config() {
  LoadedConfig loaded = parse_config(
      "[model]\nvocab_size = 300\nd_model = 64\nn_layers = 2\nn_heads = 4\nd_ff = 96\nqk_norm = true\n"
      "[data]\nseq_len = 64\n[train]\nbatch_size = 4\nmicro_batch_size = 2\nsteps = 100\n",
      "small.toml");
  complete_config(loaded, nullptr);
  return loaded.config;
}

double of(const std::array<double, phase_count>& values, Phase phase) {
  return values[static_cast<size_t>(phase)];
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
  const Config config = small_config();
  const BenchResult result = bench(config, {.warmup_steps = 1, .steps = 1});
  const Ledger ledger = make_ledger(Transformer(config.model));
  CHECK(result.parameters == ledger.parameters);
  CHECK(result.flops == 256.0 * static_cast<double>(ledger.flops_per_token));
  const double products = of(result.phase_flops, Phase::gemm_forward) + of(result.phase_flops, Phase::gemm_dx) +
                          of(result.phase_flops, Phase::gemm_dw);
  CHECK(products + of(result.phase_flops, Phase::attention) == doctest::Approx(result.flops));
  CHECK(result.mfu() > 0);
}

TEST_CASE("every op that a model spends its time in has a phase") {
  for (const char* op : {"linear", "causal_attention", "rope", "rmsnorm", "layernorm", "swiglu", "gelu",
                         "linear_cross_entropy", "cross_entropy", "matmul"}) {
    CAPTURE(op);
    CHECK(phase_of(op) != Phase::other);
  }
  CHECK(phase_of("embedding") == Phase::other);
}

TEST_CASE("memory by formula: the reference model at B4 T256") {
  LoadedConfig loaded = parse_config("[model]\nvocab_size = 2048\n[train]\nbatch_size = 4\n", "r.toml");
  complete_config(loaded, nullptr);
  const MemoryEstimate estimate = estimate_memory(Transformer(loaded.config.model), loaded.config);
  CHECK(estimate.state == 16.0 * 3688704);
  CHECK(estimate.activations == 4.0 * 1024 * 4 * 2912);
  CHECK(estimate.workspace == 4.0 * (1024 * 3088 + 1048576));
}
