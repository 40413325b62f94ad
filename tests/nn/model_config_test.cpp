// derive(): what is filled in, what is refused and how it is said; and the width that matches a number of parameters.

#include "nn/match.h"
#include "nn/transformer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

using namespace minillm;

namespace {

/// The message of derive() for a default config of 2,048 tokens and 256 positions after `change`; "" when it is right.
std::string problem(const std::function<void(ModelConfig&)>& change) {
  ModelConfig config;
  change(config);
  try {
    derive(config, 2048, 256);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("derive fills in what the config leaves out") {
  ModelConfig config;
  derive(config, 2048, 256);
  CHECK(config.vocab_size == 2048);
  CHECK(config.max_seq_len == 256);
  CHECK(config.n_kv_heads == 8);
  CHECK(config.head_dim == 32);
  CHECK(config.norm_eps == 1e-6);
  CHECK(config.final_norm == 1);
  ModelConfig post;
  post.norm = "layernorm";
  post.norm_position = "post";
  post.head_dim = 20;
  derive(post, 2048, 256);
  CHECK(post.norm_eps == 1e-5);
  CHECK(post.final_norm == 0);
  CHECK(post.head_dim == 20);
}

TEST_CASE("derive refuses what does not fit, by key, with what would") {
  CHECK(problem([](ModelConfig& c) { c.n_heads = 7; }) ==
        "model.n_heads: d_model 256 is not a multiple of the number of heads; found 7; expected 4 or 8; or set "
        "model.head_dim");
  CHECK(problem([](ModelConfig& c) { c.n_heads = 300; }).find("found 300; expected 256;") != std::string::npos);
  CHECK(problem([](ModelConfig& c) { c.n_kv_heads = 3; }) ==
        "model.n_kv_heads: does not divide n_heads 8; found 3; expected 2 or 4");
  CHECK(problem([](ModelConfig& c) { c.head_dim = 5; }).starts_with("model.head_dim: rotary positions turn pairs"));
  CHECK(problem([](ModelConfig& c) { c.head_dim = 5, c.position = "none"; }) == "");
  CHECK(problem([](ModelConfig& c) { c.head_dim = -4; }).starts_with("model.head_dim: is too small; found -4"));
  CHECK(problem([](ModelConfig& c) { c.norm = "rms"; }) ==
        "model.norm: unknown word; found \"rms\"; expected one of rmsnorm, layernorm, "
        "zero_centered_rmsnorm, scalenorm, batchnorm, none; did you mean rmsnorm?");
  CHECK(problem([](ModelConfig& c) { c.norm_position = "before"; }) ==
        "model.norm_position: unknown word; found \"before\"; expected one of pre, post, sublayer_output");
  CHECK(problem([](ModelConfig& c) { c.position = "alibi"; }) ==
        "model.position: unknown word; found \"alibi\"; expected one of rope, learned, sinusoidal, none");
  CHECK(problem([](ModelConfig& c) { c.d_ff = 0; }).starts_with("model.d_ff: is too small"));
  CHECK(problem([](ModelConfig& c) { c.d_ff = 0, c.ffn = "none"; }) == "");
  CHECK(problem([](ModelConfig& c) { c.vocab_size = 2000; }) ==
        "model.vocab_size: is smaller than the data's vocabulary; found 2000; expected at least 2048; leave it out to "
        "take the data's");
  CHECK(problem([](ModelConfig& c) { c.max_seq_len = 128; }).starts_with("model.max_seq_len: is smaller than"));
  for (const double bad : {-0.1, 1.0, std::nan("")}) {
    CHECK(problem([bad](ModelConfig& c) { c.dropout = bad; }).starts_with("model.dropout: "));
  }
  for (const double bad : {-1e-6, HUGE_VAL, std::nan("")}) {
    CHECK(problem([bad](ModelConfig& c) { c.norm_eps = bad; }).starts_with("model.norm_eps: "));
  }
  CHECK(problem([](ModelConfig& c) { c.rope_fraction = 0; }).starts_with("model.rope_fraction: "));
  const auto headwise = [](const char* position, const std::function<void(ModelConfig&)>& normalise) {
    return problem([&](ModelConfig& c) {
      c.attention_gate = "headwise", c.attention_gate_position = position;
      normalise(c);
    });
  };
  const auto qk = [](ModelConfig& c) { c.qk_norm = true; };
  const auto qkv = [](ModelConfig& c) { c.qkv_norm = true; };
  const auto over_width = [](ModelConfig& c) { c.qk_norm = true, c.qk_norm_over = "width"; };
  CHECK(headwise("k", qk).starts_with("model.attention_gate_position: qk_norm divides"));
  CHECK(headwise("v", qkv).starts_with("model.attention_gate_position: qkv_norm divides"));
  CHECK(headwise("v", qk) == "");
  CHECK(headwise("q", over_width) == "");
  CHECK(headwise("attended", qkv) == "");
  CHECK_FALSE(headwise("k", [=](ModelConfig& c) { over_width(c), c.n_kv_heads = 1; }) == "");
  CHECK(headwise("k", [=](ModelConfig& c) { qk(c), c.attention_gate_activation = "silu"; }) == "");
  CHECK(problem([](ModelConfig& c) { c.rope_theta = HUGE_VAL; }).starts_with("model.rope_theta: "));
}

TEST_CASE("derive lists all problems at once, and one for one mistake") {
  const std::string text = problem([](ModelConfig& c) { c.norm = "rms", c.n_layers = 0, c.d_model = 0; });
  CHECK(text.starts_with("3 problems\n"));
  CHECK(text.find("\n  model.norm: ") != std::string::npos);
  CHECK(text.find("\n  model.d_model: is too small; found 0; expected at least 1") != std::string::npos);
  CHECK(text.find("\n  model.n_layers: ") != std::string::npos);
}

TEST_CASE("the nearest divisors of a large width are found at once") {
  // 2^40 + 15 is a prime: a walk over all numbers up to it would not end.
  const std::string text = problem([](ModelConfig& c) { c.d_model = (int64_t{1} << 40) + 15; });
  CHECK(text.find("found 8; expected 1 or 1099511627791") != std::string::npos);
}

TEST_CASE("match_parameters finds the d_ff with the nearest count") {
  ModelConfig config;
  config.vocab_size = 2048;
  derive(config, 0, 256);
  const WidthMatch exact = match_parameters(config, 3688704);
  CHECK(exact.d_ff == 688);
  CHECK(exact.difference == 0);
  config.ffn = "gelu";
  CHECK(match_parameters(config, 3688704).d_ff == 1032);
  // A step of d_ff is 4 layers x 2 matrices x 256 elements.
  CHECK(match_parameters(config, 3688704 + 1024).d_ff == 1032);  // of two equally near the smaller
  CHECK(match_parameters(config, 3688704 + 1025).d_ff == 1033);
  CHECK(match_parameters(config, 3688704 + 1025).difference == 2048 - 1025);
  CHECK_THROWS_WITH_AS(match_parameters(config, 1000), doctest::Contains("larger already"), Error);
  config.ffn = "none";
  CHECK_THROWS_WITH_AS(match_parameters(config, 3688704), doctest::Contains("no feed-forward network"), Error);
}

TEST_CASE("match_parameters names the largest count that a config can have") {
  // One is bounded by the 31 bits of a size, the other by its products.
  for (int64_t d_model : {256, 1 << 20}) {
    CAPTURE(d_model);
    ModelConfig config;
    config.vocab_size = 2048;
    config.d_model = d_model;
    derive(config, 0, 256);
    std::string message;
    try {
      match_parameters(config, 1'000'000'000'000'000);
    } catch (const Error& error) {
      message = error.what();
    }
    REQUIRE(message.find("expected at most ") != std::string::npos);
    const int64_t largest = std::stoll(message.substr(message.find("expected at most ") + 17));
    const WidthMatch match = match_parameters(config, largest);
    CHECK(match.difference == 0);
    CHECK_THROWS_AS(match_parameters(config, largest + 1), Error);
    CHECK(match.d_ff <= INT32_MAX);
    config.d_ff = match.d_ff;
    CHECK(derive_and_check(config, 0, 256).empty());
    config.d_ff = match.d_ff + 1;
    CHECK((config.d_ff > INT32_MAX || !derive_and_check(config, 0, 256).empty()));
  }
}

TEST_CASE("a batch that does not fit the model is an error") {
  ModelConfig config;
  config.vocab_size = 11;
  derive(config, 0, 4);
  Transformer model(config);
  model.allocate(DType::float32, 1, false);
  Tape tape({.record = false});
  const std::vector<int32_t> ids = {1, 2, 3, 4, 5, 6};
  CHECK(model.logits(tape, ids, 2).shape() == Shape{2, 3, 11});
  CHECK(model.next_logits(tape, std::span(ids).first(3)).shape() == Shape{1, 11});
  CHECK(model.next_logits(tape, ids, 2).shape() == Shape{2, 11});
  for (const int64_t sequences : {0, 1, 4, 5, 7}) {  // 1: six positions are more than four
    CAPTURE(sequences);
    CHECK_THROWS_AS(model.logits(tape, ids, sequences), Error);
  }
  CHECK_THROWS_WITH_AS(model.logits(tape, std::vector<int32_t>{1, 11}, 1), doctest::Contains("token id 11"), Error);
}

TEST_CASE("extents have upper bounds too: what another program's file says has not passed a config's keys") {
  CHECK(problem([](ModelConfig& c) { c.n_layers = most_layers + 1; }) ==
        "model.n_layers: is too large; found 10001; expected at most 10000");
  CHECK(problem([](ModelConfig& c) { c.d_ff = most_size + 1; }) ==
        "model.d_ff: is too large; found 2147483648; expected at most 2147483647");
  CHECK(problem([](ModelConfig& c) { c.norm_eps = 4e38; }) ==
        "model.norm_eps: is not a positive number that a float holds; found 4e+38; expected 1.18e-38 to 3.4e+38, 1e-6 "
        "for example");
}
