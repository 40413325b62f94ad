// Short float64 trainings equal PyTorch's step by step: tests/golden/torch_curves.json, described in its README.

#include "autograd/tape.h"
#include "nn/transformer.h"
#include "optim/adamw.h"
#include "optim/clip.h"
#include "optim/schedule.h"
#include "tests/golden/golden_weights.h"
#include "train/config_file.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

using namespace minillm;
using nlohmann::json;

namespace {

// Equal mathematics moves losses by 3e-15 and sums by 6e-12 (the README says where); a wrong formula moves them by
// 1e-6.
constexpr double curve_bar = 1e-11;
constexpr double sum_bar = 1e-9;

json read_golden() {
  std::ifstream file(MINILLM_SOURCE_DIR "/tests/golden/torch_curves.json");
  REQUIRE(file.good());
  return json::parse(file);
}

Config variant_config(const json& golden, const json& variant) {
  auto overrides = golden["config"].get<std::vector<std::string>>();
  for (const json& override_text : variant["overrides"]) {
    overrides.push_back(override_text.get<std::string>());
  }
  Config config = parse_config("", "golden", overrides).config;
  derive(config.model, 0, config.data.seq_len);
  return config;
}

/// Sequence b is window (first + b) mod `windows` of the golden tokens from `origin` on.
Batch golden_batch(int64_t origin, int64_t windows, int64_t first, int64_t count, int64_t seq_len) {
  Batch batch;
  batch.batch_size = count;
  batch.seq_len = seq_len;
  for (int64_t b = 0; b < count; ++b) {
    const int64_t begin = origin + (first + b) % windows * seq_len;
    for (int64_t t = 0; t < seq_len; ++t) {
      batch.inputs.push_back(golden::token(begin + t));
      batch.targets.push_back(golden::token(begin + t + 1));
    }
  }
  return batch;
}

void set_golden_weights(ParameterStore& store, bool zero_centered) {
  for (const NamedTensor& tensor : store.named_tensors()) {
    auto* values = tensor.value.as<double>();
    for (int64_t i = 0; i < tensor.value.numel(); ++i) {
      values[i] = golden::value(tensor.name, static_cast<uint64_t>(i), zero_centered);
    }
  }
}

double sum(const Tensor& tensor) {
  double total = 0;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    total += tensor.at(i);
  }
  return total;
}

double sum_of_squares(const Tensor& tensor) {
  double total = 0;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    total += tensor.at(i) * tensor.at(i);
  }
  return total;
}

void check_near(double got, double want, double bar) {
  CAPTURE(got);
  CAPTURE(want);
  CHECK(std::abs(got - want) <= bar);
}

void check_first_gradients(const ParameterStore& store, const json& tensors) {
  for (const NamedTensor& tensor : store.named_tensors()) {
    const std::string name(tensor.name);
    INFO("gradient of ", name);
    const double want = tensors[name][0];
    check_near(std::sqrt(sum_of_squares(tensor.grad)), want, curve_bar * std::max(0.01, want));
  }
}

void check_final_weights(const ParameterStore& store, const json& tensors) {
  REQUIRE(store.named_tensors().size() == tensors.size());
  for (const NamedTensor& tensor : store.named_tensors()) {
    const std::string name(tensor.name);
    INFO("final ", name);
    check_near(sum(tensor.value), tensors[name][1], sum_bar);
    check_near(sum_of_squares(tensor.value), tensors[name][2], sum_bar);
  }
}

double validation_loss(const Transformer& model, const json& tokens, const Config& config, TapeOptions options) {
  options.record = false;
  Tape tape(options);
  const int64_t seq_len = config.data.seq_len;
  const int64_t windows = (tokens["val_count"].get<int64_t>() - 1) / seq_len;
  double total = 0;
  for (int64_t w = 0; w < windows; ++w) {
    tape.clear();
    total += model.forward(tape, golden_batch(tokens["val_first"], windows, w, 1, seq_len)).item();
  }
  return total / static_cast<double>(windows);
}

void check_variant(const json& golden, const json& variant, Ops ops) {
  INFO("variant ", variant["name"].get<std::string>(), ops == Ops::composed ? ", composed" : ", fused");
  const Config config = variant_config(golden, variant);
  const json& tokens = golden["tokens"];
  const int64_t seq_len = config.data.seq_len;
  const int64_t batch_size = config.train.batch_size;
  const int64_t windows = (tokens["train_count"].get<int64_t>() - 1) / seq_len;
  const TapeOptions options{.ops = ops};

  Transformer model(config.model);
  model.allocate(DType::float64, 1);
  ParameterStore& store = model.parameters();
  REQUIRE(store.count() == variant["parameters"].get<int64_t>());
  set_golden_weights(store, config.model.norm == "zero_centered_rmsnorm");
  AdamW optimizer(store, config.optim);
  Tape tape(options);
  for (int64_t step = 0; step < config.train.steps; ++step) {
    INFO("step ", step);
    const auto index = static_cast<size_t>(step);
    tape.clear();
    store.zero_gradients();
    Var loss = model.forward(tape, golden_batch(0, windows, step * batch_size, batch_size, seq_len));
    check_near(loss.item(), variant["loss"][index], curve_bar);
    tape.backward(loss);
    store.finish_gradients();
    if (step == 0) {
      check_first_gradients(store, variant["tensors"]);
    }
    const double norm = gradient_norm(store.gradients());
    const double want = variant["grad_norm"][index];
    check_near(norm, want, curve_bar * want);
    optimizer.step(learning_rate(config.optim, step, config.train.steps), clip_factor(norm, config.optim.grad_clip));
  }
  check_final_weights(store, variant["tensors"]);
  check_near(validation_loss(model, tokens, config, options), variant["val_loss"], curve_bar);
}

}  // namespace

TEST_CASE("golden curves: twelve variants train as in PyTorch, in float64") {
  const json golden = read_golden();
  REQUIRE(golden["variants"].size() == 12);
  for (const json& variant : golden["variants"]) {
    check_variant(golden, variant, Ops::fused);
  }
}

TEST_CASE("golden curves: the composed ops train as in PyTorch too") {
  const json golden = read_golden();
  for (const json& variant : golden["variants"]) {
    check_variant(golden, variant, Ops::composed);
  }
}
