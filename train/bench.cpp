#include "train/bench.h"

#include "core/fma_peak.h"
#include "core/memory.h"
#include "core/rng.h"
#include "data/loader.h"
#include "nn/ledger.h"
#include "train/complete_config.h"
#include "train/memory_estimate.h"
#include "train/trainer.h"

#include <algorithm>
#include <numeric>

namespace minillm {

namespace {

constexpr int64_t random_windows = 64;

int64_t random_token_count(const Config& config) {
  return random_windows * config.data.seq_len + 1;
}

/// Uniform random ids: what a step costs does not depend on them.
TokenFile random_tokens(const Config& config) {
  RandomStream random(random_key(config.train.seed, "bench tokens"));
  std::vector<uint32_t> ids(static_cast<size_t>(random_token_count(config)));
  for (uint32_t& id : ids) {
    id = static_cast<uint32_t>(random.below(static_cast<uint64_t>(config.model.vocab_size)));
  }
  TokenFile data;
  data.train = Tokens(std::move(ids));
  data.vocab_size = config.model.vocab_size;
  return data;
}

using Phases = std::array<double, phase_count>;

double total(const Phases& phases) {
  return std::accumulate(phases.begin(), phases.end(), 0.0);
}

Phases median_of(std::vector<Phases> steps) {
  const auto middle = steps.begin() + static_cast<ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end(),
                   [](const Phases& a, const Phases& b) { return total(a) < total(b); });
  return *middle;
}

double& of(Phases& phases, Phase phase) {
  return phases[static_cast<size_t>(phase)];
}

/// What the config says, else random tokens; the config is complete after it, and fits the machine's memory.
TokenFile data_of(LoadedConfig& loaded) {
  Config& config = loaded.config;
  if (!config.data.path.empty()) {
    TokenFile data = open_data_of(loaded);
    complete_config(loaded, &data);
    check_training_fits(Transformer(config.model), config);
    return data;
  }
  if (config.model.vocab_size == 0) {
    config.model.vocab_size = bench_vocab_size;
  }
  complete_config(loaded, nullptr);
  check_training_fits(Transformer(config.model), config,
                      static_cast<double>(random_token_count(config)) * sizeof(uint32_t));
  return random_tokens(config);
}

void measure_steps(Trainer& trainer, const BenchOptions& options, const StepHook& after_warmup, BenchResult& result) {
  for (int64_t i = 0; i < options.warmup_steps; ++i) {
    trainer.step();
  }
  if (after_warmup) {
    after_warmup([&] { trainer.step(); });
  }
  std::vector<Phases> steps;
  steps.reserve(static_cast<size_t>(options.steps));
  PhaseClock clock;
  for (int64_t i = 0; i < options.steps; ++i) {
    clock.take();
    result.last_loss = trainer.step().loss;
    steps.push_back(clock.take());
  }
  result.phases = median_of(std::move(steps));
  result.step_seconds = total(result.phases);
  result.peak_memory_bytes = peak_memory_bytes();
  result.arena_bytes = static_cast<int64_t>(trainer.arena_bytes());
}

/// Composed ops are made of primitives that stand in several phases, so all but the optimizer is `other` there.
void merge_phases(BenchResult& result) {
  for (size_t i = 0; i < phase_count; ++i) {
    const Phase phase = static_cast<Phase>(i);
    if (phase != Phase::optimizer && phase != Phase::other) {
      of(result.phases, Phase::other) += result.phases[i];
      result.phases[i] = std::numeric_limits<double>::quiet_NaN();
    }
  }
}

/// What a step comes to by formula, whatever it took.
void count_work(const Transformer& model, const Config& config, BenchResult& result) {
  result.parameters = model.parameters().count();
  result.memory_formula_bytes = estimate_memory(model, config).total();
  result.tokens_per_step = config.train.batch_size * config.data.seq_len;
  const double tokens = static_cast<double>(result.tokens_per_step);
  const TrainingFlops flops = training_flops(model, config.data.seq_len);
  for (const Phase phase : {Phase::gemm_forward, Phase::gemm_dx, Phase::gemm_dw}) {
    of(result.phase_flops, phase) = tokens * static_cast<double>(flops.matrices) / 3;
  }
  of(result.phase_flops, Phase::attention) = tokens * static_cast<double>(flops.attention);
  result.flops = tokens * static_cast<double>(flops.total());
}

}  // namespace

BenchResult bench(LoadedConfig loaded, const BenchOptions& options, const StepHook& after_warmup) {
  check(options.steps >= 1 && options.warmup_steps >= 1, "a benchmark needs steps to warm up and steps to count");
  const TokenFile data = data_of(loaded);
  Config& config = loaded.config;
  config.train.steps = std::max(config.train.steps, options.warmup_steps + options.steps + 1);  // the schedule's end
  BenchResult result;
  const double peak_before = fma_peak_gflops();
  result.memory_before_bytes = resident_memory_bytes();
  Transformer model(config.model);
  model.allocate(model_dtype(config.train), config.train.seed);
  const Loader loader(data.train, config.data.seq_len, config.data.order, config.train.seed, "train",
                      config.data.objective);
  Trainer trainer(config, model, loader);
  measure_steps(trainer, options, after_warmup, result);
  const double peak_after = fma_peak_gflops();
  result.fma_peak_gflops = std::max(peak_before, peak_after);
  result.fma_peak_change = result.has_peak() ? peak_after / peak_before - 1 : 0;
  count_work(model, config, result);
  if (config.train.ops == "composed") {
    merge_phases(result);
  }
  return result;
}

}  // namespace minillm
