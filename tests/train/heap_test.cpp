// A training step in the steady state takes nothing from the heap. operator new is replaced for this whole program and
// counts while it is watched; what oneDNN and OpenMP take for themselves does not count.

#include "core/parallel.h"
#include "nn/transformer.h"
#include "optim/adamw.h"
#include "optim/clip.h"
#include "tests/small_model.h"

#include <doctest/doctest.h>

#include <dlfcn.h>
#include <execinfo.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

namespace {

std::atomic<bool> watching{false};
std::atomic<int> taken{0};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Whether the innermost caller outside the C and C++ libraries is neither oneDNN nor OpenMP.
bool is_ours() {
  void* frames[32];
  const int depth = backtrace(frames, 32);
  for (int i = 2; i < depth; ++i) {  // 0 and 1: this function and operator new
    Dl_info object = {};
    if (dladdr(frames[i], &object) == 0 || object.dli_fname == nullptr) {
      continue;
    }
    const std::string_view name = object.dli_fname;
    if (contains(name, "libstdc++") || contains(name, "libc.so")) {
      continue;
    }
    return !contains(name, "libdnnl") && !contains(name, "libgomp");
  }
  return true;
}

void* take(std::size_t bytes, std::size_t alignment) {
  if (watching && is_ours()) {
    ++taken;
  }
  const std::size_t rounded = (bytes + alignment) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

/// Allocations while this object lives.
class Watch {
 public:
  Watch() {
    taken = 0;
    watching = true;
  }
  ~Watch() { watching = false; }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  static int count() { return taken; }
};

}  // namespace

void* operator new(std::size_t bytes) {
  return take(bytes, alignof(std::max_align_t));
}
void* operator new[](std::size_t bytes) {
  return take(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return take(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

using namespace minillm;

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
  const Watch watch;
  step(model, model.parameters(), tape, optimizer, batch);
  return Watch::count();
}

}  // namespace

TEST_CASE("the count of allocations sees one") {
  const Watch watch;
  const auto number = std::make_unique<std::vector<int>>(3);
  CHECK(number->size() == 3);
  CHECK(Watch::count() == 2);
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
