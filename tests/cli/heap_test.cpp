// A training step in the steady state takes nothing from the heap; what oneDNN and OpenMP take for themselves does not
// count.

#include "cli/heap_watch.h"
#include "core/arena.h"
#include "core/kernels/gemm_panels.h"
#include "core/parallel.h"
#include "core/tensor.h"
#include "generate/decoder.h"
#include "nn/transformer.h"
#include "optim/adamw.h"
#include "optim/clip.h"
#include "tests/small_model.h"

#include <doctest/doctest.h>
#include <fmt/ranges.h>
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
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

/// What each of 20 steps takes, the first included.
std::vector<int> allocations_of_steps(ModelConfig config) {
  derive(config, 0, 100);
  Transformer model(config);
  model.allocate(DType::float32, 1);
  Tape tape;
  AdamW optimizer(model.parameters(), OptimConfig{});
  const Batch batch = small_batch(100, 301);
  std::vector<int> allocations(20, -1);
  for (int& taken : allocations) {
    const HeapWatch watch;
    step(model, model.parameters(), tape, optimizer, batch);
    taken = HeapWatch::count();
  }
  return allocations;
}

/// One thread meets the same matrices in every step: from the fourth on, none takes anything.
bool is_steady(const std::vector<int>& allocations) {
  return std::all_of(allocations.begin() + 3, allocations.end(), [](int taken) { return taken == 0; });
}

/// Packed matrices are kept by each thread and grow to the largest that it met; with several threads, which meets which
/// differs from step to step, so it may take some steps until they take nothing. Two in a row, since a step that works
/// by turns on two memories would pass with one.
bool becomes_steady(const std::vector<int>& allocations) {
  return std::search_n(allocations.begin(), allocations.end(), 2, 0) != allocations.end();
}

/// What `body` takes.
template <class Body>
int allocations_of(Body body) {
  const HeapWatch watch;
  body();
  return HeapWatch::count();
}

/// Calls operator new with a size that the compiler does not see: it would warn of impossible ones.
void* take(size_t bytes) {
  const volatile size_t hidden = bytes;
  return ::operator new(hidden);
}

void* take(size_t bytes, size_t alignment) {
  const volatile size_t hidden = bytes;
  return ::operator new (hidden, std::align_val_t{alignment});
}

}  // namespace

TEST_CASE("the count of allocations sees each one") {
  const HeapWatch watch;
  const auto number = std::make_unique<std::vector<int>>(3);
  CHECK(number->size() == 3);
  CHECK(HeapWatch::count() == 2);
}

TEST_CASE("the count sees the memory of arenas, buffers and packed matrices") {
  CHECK(allocations_of([] { const Buffer buffer({3}, DType::float32); }) == 1);
  CHECK(allocations_of([] { const Buffer buffer({1 << 20}, DType::float32); }) == 1);
  Arena arena(64);
  CHECK(allocations_of([&] { arena.allocate(64); }) == 2);  // the block, and its place in the list of blocks
  CHECK(allocations_of([&] { arena.allocate(64); }) == 0);
  CHECK(allocations_of([&] { arena.allocate(size_t{64} << 20); }) >= 1);
  if (kernels::widest_panels() == nullptr) {
    return;
  }
  const auto multiply = [](int64_t n) {
    const std::vector<float> a(static_cast<size_t>(n * n));
    std::vector<float> c(static_cast<size_t>(n * n));
    return allocations_of([&] {
      kernels::gemm_panels(*kernels::widest_panels(), {a.data(), n, false}, {a.data(), n, false}, {c.data(), n}, n, n,
                           n, 0.0);
    });
  };
  multiply(400);
  CHECK(multiply(400) == 0);
  CHECK(multiply(800) > 0);
}

TEST_CASE("our operator new gives what was asked for, or throws") {
  void* small = take(0);
  CHECK(small != nullptr);
  ::operator delete(small);
  for (const size_t alignment : {size_t{32}, size_t{64}, size_t{4096}}) {
    for (const size_t bytes : {size_t{0}, size_t{1}, alignment - 1, alignment, alignment + 1, 5 * alignment}) {
      void* memory = take(bytes, alignment);
      CHECK(reinterpret_cast<uintptr_t>(memory) % alignment == 0);
      CHECK(malloc_usable_size(memory) >= bytes);
      ::operator delete (memory, std::align_val_t{alignment});
    }
    CHECK_THROWS_AS(take(SIZE_MAX - 5, alignment), std::bad_alloc);
    CHECK_THROWS_AS(take(SIZE_MAX, alignment), std::bad_alloc);
  }
  CHECK_THROWS_AS(take(SIZE_MAX - 5), std::bad_alloc);
  CHECK_THROWS_AS(take(SIZE_MAX), std::bad_alloc);
}

TEST_CASE("a training step in the steady state takes nothing from the heap") {
  const int before = num_threads();
  for (const ModelConfig& config : {plain_config(), rich_config()}) {
    CAPTURE(config.norm);
    set_num_threads(1);
    const std::vector<int> of_one = allocations_of_steps(config);
    INFO("one thread: ", fmt::format("{}", fmt::join(of_one, " ")));
    CHECK(is_steady(of_one));
    set_num_threads(2);
    const std::vector<int> of_two = allocations_of_steps(config);
    INFO("two threads: ", fmt::format("{}", fmt::join(of_two, " ")));
    CHECK(becomes_steady(of_two));
  }
  set_num_threads(before);
}

TEST_CASE("a token that a decoder reads takes nothing from the heap") {
  const int before = num_threads();
  set_num_threads(1);
  const auto mla = [](ModelConfig& c) { c.attention = "mla", c.rope_fraction = 0.5; };
  const auto hybrid = [](ModelConfig& c) { c.attention = "hybrid"; };
  const auto normed_width = [](ModelConfig& c) { c.qk_norm = true, c.qk_norm_over = "width"; };
  for (void (*change)(ModelConfig&) : {+mla, +hybrid, +normed_width}) {
    for (ModelConfig config : {plain_config(), rich_config()}) {
      change(config);
      CAPTURE(config.attention);
      CAPTURE(config.qk_norm_over);
      CAPTURE(config.norm);
      derive(config, 0, 64);
      Transformer model(config);
      model.allocate(DType::float32, 1);
      Decoder decoder(model, 64, {});
      const std::vector<int32_t> ids = {1, 2, 3, 4, 5};
      decoder.read(ids);
      std::vector<int> allocations(20);
      for (int& taken : allocations) {
        taken = allocations_of([&] { decoder.read(std::span(ids).first(1)); });
      }
      INFO(fmt::format("{}", fmt::join(allocations, " ")));
      CHECK(is_steady(allocations));
    }
  }
  set_num_threads(before);
}
