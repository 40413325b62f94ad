// How weights start: what docs/numbers.md says under "Init", measured.

#include "nn/transformer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

using namespace minillm;

namespace {

struct Moments {
  double mean = 0;
  double spread = 0;
  double smallest = 0;
  double largest = 0;
};

/// Of all weights whose name contains a part.
Moments moments_of(const Transformer& model, std::string_view part) {
  Moments m{.smallest = HUGE_VAL, .largest = -HUGE_VAL};
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (const NamedTensor& tensor : model.parameters().named_tensors()) {
    if (tensor.name.find(part) == std::string_view::npos) {
      continue;
    }
    for (int64_t i = 0; i < tensor.value.numel(); ++i) {
      const double value = tensor.value.at(i);
      sum += value;
      squares += value * value;
      m.smallest = std::min(m.smallest, value);
      m.largest = std::max(m.largest, value);
    }
    count += static_cast<double>(tensor.value.numel());
  }
  REQUIRE(count > 0);
  m.mean = sum / count;
  m.spread = std::sqrt(squares / count - m.mean * m.mean);
  return m;
}

std::unique_ptr<Transformer> started(void (*change)(ModelConfig&)) {
  ModelConfig config;
  config.vocab_size = 2048;
  change(config);
  derive(config, 0, 256);
  auto model = std::make_unique<Transformer>(config);
  model->allocate(DType::float32, 1, false);
  return model;
}

}  // namespace

TEST_CASE("matrices start with a spread of 0.02, those that write to the residual stream with 0.02 / sqrt(2 L)") {
  const auto model = started([](ModelConfig&) {});
  for (const char* name : {"embed_tokens", "q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"}) {
    CAPTURE(name);
    CHECK(moments_of(*model, name).spread == doctest::Approx(0.02).epsilon(0.01));
    CHECK(std::abs(moments_of(*model, name).mean) < 1e-4);
  }
  for (const char* name : {"o_proj", "down_proj"}) {
    CAPTURE(name);
    CHECK(moments_of(*model, name).spread == doctest::Approx(0.0070711).epsilon(0.01));
  }
  const auto deep = started([](ModelConfig& c) { c.n_layers = 12, c.d_model = 128; });
  CHECK(moments_of(*deep, "down_proj").spread == doctest::Approx(0.0040825).epsilon(0.01));  // GPT-2's depth
  const auto plain = started([](ModelConfig& c) { c.residual_out_init = "plain"; });
  CHECK(moments_of(*plain, "o_proj").spread == doctest::Approx(0.02).epsilon(0.01));
}

TEST_CASE("gains start so that a norm changes nothing but the scale, biases at zero") {
  const auto all = [](const Transformer& model, std::string_view name, double value) {
    CAPTURE(std::string(name));
    CHECK(moments_of(model, name).smallest == value);
    CHECK(moments_of(model, name).largest == value);
  };
  all(*started([](ModelConfig&) {}), "norm.weight", 1);
  all(*started([](ModelConfig& c) { c.norm = "zero_centered_rmsnorm", c.qk_norm = true; }), "norm.weight", 0);
  all(*started([](ModelConfig& c) { c.bias = true; }), "bias", 0);
  all(*started([](ModelConfig& c) { c.residual = "attnres"; }), "attention_residual", 0);  // an even mean at first
  const auto mhc = started([](ModelConfig& c) { c.residual = "mhc"; });
  all(*mhc, "attention_residual.base", 0);
  CHECK(moments_of(*mhc, "attention_residual.scale").mean == doctest::Approx(0.01));
}

TEST_CASE("a linear layer's rates start log-uniform below 16, its time bias at 1") {
  const auto model = started([](ModelConfig& c) { c.attention = "gdn", c.gdn_value_heads = 256; });
  const Moments rates = moments_of(*model, "A_log");  // 4 x 256 draws of log u, u uniform in (0, 16)
  CHECK(rates.largest < std::log(16.0));
  CHECK(rates.mean == doctest::Approx(std::log(16.0) - 1).epsilon(0.05));
  CHECK(rates.spread == doctest::Approx(1).epsilon(0.1));
  CHECK(moments_of(*model, "dt_bias").smallest == 1);
  CHECK(moments_of(*model, "dt_bias").largest == 1);
}
