// A training step in the steady state takes nothing from the heap; what oneDNN and OpenMP take for themselves does not
// count.

#include "cli/heap_watch.h"
#include "core/parallel.h"
#include "nn/transformer.h"
#include "optim/adamw.h"
#include "optim/clip.h"
#include "tests/small_model.h"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

using namespace minillm;
using cli::HeapWatch;

namespace {

ModelConfig plain_config() {
  return small_model(301, 64);
}

/// What the plain one leaves out: other norms, biases, gates, learned positions, dropout.
ModelConfig rich_config() {
  ModelConfig config = plain_config();
  config.norm = "layernorm";
  config.bias = true;
  config.qk_norm = true;
  config.attention_gate = "elementwise";
  config.n_kv_heads = 2;
  config.position = "learned";
  config.ffn = "gelu";
  config.dropout = 0.1;
  config.tie_embeddings = false;
  return config;
}

void step(const Transformer& model, ParameterStore& parameters, Tape& tape, AdamW& optimizer, const Batch& batch) {
  parameters.zero_gradients();
  tape.backward(model.forward(tape, batch));
  parameters.finish_gradients();
  const double norm = gradient_norm(parameters.gradients());
  optimizer.step(1e-3, clip_factor(norm, 1.0));
  tape.clear();
}

int allocations_a_step(ModelConfig config) {
  derive(config, 0, 100);
  Transformer model(config);
  model.allocate(DType::float32, 1);
  Tape tape;
  AdamW optimizer(model.parameters(), OptimConfig{});
  const Batch batch = small_batch(100, 301);
  for (int warm_up = 0; warm_up < 3; ++warm_up) {
    step(model, model.parameters(), tape, optimizer, batch);
  }
  const HeapWatch watch;
  step(model, model.parameters(), tape, optimizer, batch);
  return HeapWatch::count();
}

}  // namespace

TEST_CASE("the count of allocations sees one") {
  const HeapWatch watch;
  const auto number = std::make_unique<std::vector<int>>(3);
  CHECK(number->size() == 3);
  CHECK(HeapWatch::count() == 2);
}

TEST_CASE("a training step in the steady state takes nothing from the heap") {
  const int before = num_threads();
  for (int threads : {1, 2}) {
    CAPTURE(threads);
    set_num_threads(threads);
    CHECK(allocations_a_step(plain_config()) == 0);
    CHECK(allocations_a_step(rich_config()) == 0);
  }
  set_num_threads(before);
}
