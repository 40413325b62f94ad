// A model that reads on from its past gives the logits of one that reads everything again: every mixer, every way to
// know positions, every residual connection, in pieces of any length.

#include "autograd/decoding_weights.h"
#include "core/rng.h"
#include "generate/generator.h"
#include "nn/transformer.h"
#include "tests/small_model.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

using namespace minillm;

namespace {

constexpr int64_t positions = 23;

struct Variant {
  const char* name;
  std::function<void(ModelConfig&)> change;
};

const Variant variants[] = {
    {"multi-head", [](ModelConfig&) {}},
    {"grouped", [](ModelConfig& c) { c.n_kv_heads = 2; }},
    {"multi-query, untied", [](ModelConfig& c) { c.n_kv_heads = 1, c.tie_embeddings = false; }},
    {"half of rope", [](ModelConfig& c) { c.rope_fraction = 0.5; }},
    {"learned positions, biases", [](ModelConfig& c) { c.position = "learned", c.bias = true; }},
    {"sinusoidal positions", [](ModelConfig& c) { c.position = "sinusoidal"; }},
    {"no positions", [](ModelConfig& c) { c.position = "none"; }},
    {"normalised queries and keys, gate in q_proj",
     [](ModelConfig& c) { c.qk_norm = true, c.attention_gate = "elementwise"; }},
    {"normalised over the width, gate on keys",
     [](ModelConfig& c) {
       c.qkv_norm = true, c.qk_norm_over = "width", c.attention_gate = "elementwise", c.attention_gate_position = "k";
     }},
    {"headwise gate", [](ModelConfig& c) { c.attention_gate = "headwise"; }},
    {"latent", [](ModelConfig& c) { c.attention = "mla"; }},
    {"latent queries too, half of rope, gate",
     [](ModelConfig& c) {
       c.attention = "mla", c.mla_q_rank = 12, c.rope_fraction = 0.5, c.attention_gate = "elementwise";
     }},
    {"latent without rope", [](ModelConfig& c) { c.attention = "mla", c.position = "none"; }},
    {"linear", [](ModelConfig& c) { c.attention = "gdn"; }},
    {"linear, a position at a time", [](ModelConfig& c) { c.attention = "gdn", c.gdn_form = "recurrent"; }},
    {"hybrid", [](ModelConfig& c) { c.attention = "hybrid", c.full_attention_every = 2; }},
    {"mixture of experts", [](ModelConfig& c) { c.ffn = "moe", c.moe_experts = 4, c.moe_top_k = 2; }},
    {"hyper-connections", [](ModelConfig& c) { c.residual = "mhc"; }},
    {"gated residual", [](ModelConfig& c) { c.residual = "gated"; }},
    {"attention residuals", [](ModelConfig& c) { c.residual = "attnres"; }},
    {"post-norm without feed-forward", [](ModelConfig& c) { c.norm_position = "post", c.ffn = "none"; }},
};

ModelConfig variant_model(const std::function<void(ModelConfig&)>& change) {
  ModelConfig config = small_model(50, 32);
  change(config);
  derive(config, 0, positions);
  return config;
}

std::vector<int32_t> some_ids() {
  std::vector<int32_t> ids(positions);
  RandomStream random(random_key(3, "ids"));
  for (int32_t& id : ids) {
    id = static_cast<int32_t>(random.below(50));
  }
  return ids;
}

/// The largest difference of the logits behind each piece from those of a model that reads it all at once.
double worst_difference(const Transformer& model, TapeOptions options, const std::vector<int64_t>& pieces) {
  const std::vector<int32_t> ids = some_ids();
  options.record = false;
  options.training = false;
  Tape whole(options);
  const std::vector<double> expected = numbers_of(model.logits(whole, ids, 1).value());
  Past past(positions);
  Past* const pasts[] = {&past};
  options.pasts = pasts;
  Tape tape(options);
  const int64_t V = model.config().vocab_size;
  double worst = 0;
  int64_t read = 0;
  for (const int64_t piece : pieces) {
    tape.clear();
    const auto unread = std::span<const int32_t>(ids).subspan(static_cast<size_t>(read), static_cast<size_t>(piece));
    const Tensor logits = model.next_logits(tape, unread).value();
    read += piece;
    REQUIRE(past.positions() == read);
    for (int64_t id = 0; id < V; ++id) {
      worst = std::max(worst, std::abs(logits.at(id) - expected[static_cast<size_t>((read - 1) * V + id)]));
    }
  }
  REQUIRE(read == positions);
  return worst;
}

const std::vector<std::vector<int64_t>> ways = {
    std::vector<int64_t>(positions, 1), {positions}, {9, 1, 1, 12}, {1, 20, 2}, {3, 5, 7, 8}};

void check_variant(const Variant& variant, DType dtype, const TapeOptions& options, double bar) {
  Transformer model(variant_model(variant.change));
  model.allocate(dtype, 7, false);
  // Larger than at the start, so that positions matter.
  for (const NamedTensor& tensor : model.parameters().named_tensors()) {
    if (tensor.value.shape.rank() == 2) {
      for (int64_t i = 0; i < tensor.value.numel(); ++i) {
        tensor.value.set(i, 5 * tensor.value.at(i));
      }
    }
  }
  for (const std::vector<int64_t>& pieces : ways) {
    CAPTURE(variant.name);
    CAPTURE(pieces.size());
    CHECK(worst_difference(model, options, pieces) < bar);
  }
}

}  // namespace

TEST_CASE("reading on from the past equals reading everything again, in double") {
  for (const Variant& variant : variants) {
    check_variant(variant, DType::float64, {}, 1e-11);
  }
}

TEST_CASE("reading on from the past equals reading everything again, in float and on every path") {
  for (const Variant& variant : variants) {
    check_variant(variant, DType::float32, {}, 1e-4);
    check_variant(variant, DType::float32, {.kernels = Kernels::reference}, 1e-4);
    check_variant(variant, DType::float32, {.ops = Ops::composed}, 1e-4);
  }
}

TEST_CASE("a past that is cleared begins anew, and one that is full says so") {
  Transformer model(variant_model([](ModelConfig& c) { c.attention = "hybrid"; }));
  model.allocate(DType::float32, 7, false);
  const std::vector<int32_t> ids = some_ids();
  Past past(positions - 1);
  Past* const pasts[] = {&past};
  Tape tape({.record = false, .training = false, .pasts = pasts});
  const auto part = std::span<const int32_t>(ids).first(5);
  const std::vector<double> first = numbers_of(model.next_logits(tape, part).value());
  tape.clear();
  model.next_logits(tape, part);
  CHECK(past.bytes() > 0);
  past.clear();
  tape.clear();
  CHECK(numbers_of(model.next_logits(tape, part).value()) == first);
  tape.clear();
  CHECK_THROWS_AS(model.next_logits(tape, std::span<const int32_t>(ids).first(positions - 5)), Error);
}

TEST_CASE("rounded weights: single tokens are read with the numbers that whole prompts are read with") {
  using kernels::DecodingType;
  for (const DecodingType type : {DecodingType::bf16, DecodingType::int8}) {
    Transformer model(variant_model([](ModelConfig& c) { c.bias = true, c.tie_embeddings = true; }));
    model.allocate(DType::float32, 7, false);
    const std::vector<double> before = numbers_of(model.parameters().weights());
    const DecodingWeights rounded(model.parameters(), type);
    rounded.round(model.parameters());
    CHECK(numbers_of(model.parameters().weights()) != before);
    const size_t bytes = type == DecodingType::bf16 ? 2 : 1;
    CHECK(rounded.bytes() < (bytes * before.size() * 5) / 2);
    for (const std::vector<int64_t>& pieces : ways) {
      CHECK(worst_difference(model, {.decoding = &rounded}, pieces) < 1e-4);
    }
    // What changes in the model is not seen: few rows are multiplied by the rounded weights alone.
    const std::vector<int32_t> ids = some_ids();
    const auto token_logits = [&](const DecodingWeights* weights) {
      Tape tape({.record = false, .training = false, .decoding = weights});
      return numbers_of(model.next_logits(tape, std::span<const int32_t>(ids).first(1)).value());
    };
    const std::vector<double> unchanged = token_logits(&rounded);
    for (const NamedTensor& tensor : model.parameters().named_tensors()) {
      if (tensor.name.ends_with("down_proj.weight")) {
        tensor.value.set(0, 100);
      }
    }
    CHECK(token_logits(&rounded) == unchanged);
    CHECK(token_logits(nullptr) != unchanged);
  }
}

TEST_CASE("texts that are written side by side are what each is by itself") {
  for (const Variant& variant : variants) {
    CAPTURE(variant.name);
    Transformer model(variant_model(variant.change));
    model.allocate(DType::float64, 7, false);
    const std::vector<std::vector<int32_t>> prompts = {{1}, {1, 5, 9, 13}, {1, 2}, std::vector<int32_t>(positions, 3)};
    const TokenRules rules = {.bos = 1, .eos = 2};
    std::vector<Sampler> samplers;
    std::vector<std::vector<int32_t>> alone;
    for (size_t i = 0; i < prompts.size(); ++i) {
      samplers.emplace_back(SamplerOptions{}, i);
      Sampler sampler(SamplerOptions{}, i);
      alone.push_back(generate(model, prompts[i], 12, sampler, rules, {}).tokens);
    }
    const std::vector<Generation> together = generate_batch(model, prompts, 12, samplers, rules, {});
    for (size_t i = 0; i < prompts.size(); ++i) {
      CHECK(together[i].tokens == alone[i]);
    }
    CHECK(together[3].stopped_by == "context");
    CHECK(together[3].tokens.size() <= 1);
  }
}
