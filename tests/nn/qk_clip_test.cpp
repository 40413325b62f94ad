// QK-Clip: after an update no score that was seen would exceed the threshold.

#include "nn/attention.h"
#include "tests/autograd/op_test.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <iterator>

using namespace minillm;
using test::normal_values;

namespace {

constexpr int64_t T = 7;

/// One attention sublayer with weights so large that scores are in the tens.
class ScoredAttention {
 public:
  explicit ScoredAttention(ModelConfig config) : config_(derived(std::move(config))), rope_(config_) {
    attention_ = make_mixer(config_, Scope(store_, ""), rope_, 0);
    store_.allocate(DType::float64);
    rope_.allocate(DType::float64);
    uint64_t stream = 0;
    for (const NamedTensor& tensor : store_.named_tensors()) {
      copy_values(normal_values(tensor.value.shape, ++stream, 1.0).tensor(), tensor.value);
    }
  }

  /// Runs the sublayer as in training; returns the largest score of each head.
  std::vector<double> run(const Buffer& x, TapeOptions options = {}) const {
    Tape tape(options);
    attention_->forward(tape.variable(x.tensor()));
    for (NodeId id = 0; id < tape.size(); ++id) {
      Node& node = tape.node(id);
      if (std::string_view(node.op) == "causal_attention") {
        Var qkv = tape.var(tape.node(node.inputs[0]));
        return largest_scores(qkv, qkv, layout_of(config_), true);
      }
    }
    FAIL("no attention");
    return {};
  }

  std::vector<double> weights(std::string_view name) const {
    for (const NamedTensor& tensor : store_.named_tensors()) {
      if (tensor.name == name) {
        return numbers_of(tensor.value);
      }
    }
    FAIL("no weight " << std::string(name));
    return {};
  }

  ParameterStore& store() { return store_; }

 private:
  static ModelConfig derived(ModelConfig config) {
    config.vocab_size = 11;
    config.d_model = 12;
    config.n_heads = 4;
    config.head_dim = 4;
    config.max_seq_len = T;
    derive(config, 0, T);
    return config;
  }

  ModelConfig config_;
  RopeTable rope_;
  ParameterStore store_;
  std::unique_ptr<Sublayer> attention_;
};

double largest_of(const std::vector<double>& scores) {
  return *std::max_element(scores.begin(), scores.end());
}

}  // namespace

TEST_CASE("QK-Clip brings every head above the threshold down to it") {
  struct Row {
    const char* what;
    void (*change)(ModelConfig&);
  };
  const Row rows[] = {
      {"own keys", [](ModelConfig&) {}},
      {"shared keys", [](ModelConfig& c) { c.n_kv_heads = 2, c.bias = true; }},
      {"a gate among the queries",
       [](ModelConfig& c) { c.n_kv_heads = 1, c.bias = true, c.attention_gate = "elementwise"; }},
      {"a latent", [](ModelConfig& c) { c.attention = "mla", c.rope_fraction = 0.5, c.bias = true; }},
      {"latents of both", [](ModelConfig& c) { c.attention = "mla", c.rope_fraction = 0.5, c.mla_q_rank = 5; }},
      {"a latent, one rotated key for all heads", [](ModelConfig& c) { c.attention = "mla", c.bias = true; }},
      {"a latent, nothing rotated", [](ModelConfig& c) { c.attention = "mla", c.position = "none"; }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    ModelConfig config;
    row.change(config);
    const Buffer x = normal_values({2, T, 12}, 9);
    const std::vector<double> before = ScoredAttention(config).run(x);
    config.qk_clip = largest_of(before) / 2;
    ScoredAttention bench(config);
    REQUIRE(bench.run(x) == before);
    bench.store().updated();
    const std::vector<double> after = bench.run(x);
    for (size_t h = 0; h < before.size(); ++h) {
      // The greatest score of a head stays where it was, so it is scaled by the head's gamma.
      CHECK(after[h] == doctest::Approx(std::min(before[h], config.qk_clip)).epsilon(1e-12));
    }
    const std::vector<double> again = bench.run(x);
    bench.store().updated();
    CHECK(largest_of(bench.run(x)) == doctest::Approx(largest_of(again)).epsilon(1e-12));
  }
}

TEST_CASE("QK-Clip leaves the bits of heads below the threshold") {
  ModelConfig config;
  config.qk_clip = 1e6;
  ScoredAttention bench(config);
  const Buffer x = normal_values({1, T, 12}, 9);
  const std::vector<double> before = bench.run(x);
  bench.store().updated();
  CHECK(bench.run(x) == before);
}

TEST_CASE("of a latent's head the shared rotated key stays, its queries take gamma, the plain ones the root") {
  ModelConfig config;
  config.attention = "mla";
  config.rope_fraction = 0.5;
  const Buffer x = normal_values({2, T, 12}, 9);
  const std::vector<double> before = ScoredAttention(config).run(x);
  const auto largest = std::max_element(before.begin(), before.end());
  std::vector<double> others = before;
  others.erase(others.begin() + (largest - before.begin()));
  config.qk_clip = (*largest + largest_of(others)) / 2;  // one head alone is above it
  ScoredAttention bench(config);
  bench.run(x);
  const std::vector<double> q = bench.weights("self_attn.q_proj.weight");
  const std::vector<double> kv_a = bench.weights("self_attn.kv_a_proj.weight");
  const std::vector<double> kv_b = bench.weights("self_attn.kv_b_proj.weight");
  bench.store().updated();
  const double gamma = config.qk_clip / *largest;
  const int64_t head = largest - before.begin();
  const std::vector<double> clipped_q = bench.weights("self_attn.q_proj.weight");
  for (int64_t i = 0; i < std::ssize(q); ++i) {  // rows of 12: of each head two rotated, two plain
    const int64_t row = i / 12;
    const double factor = row / 4 != head ? 1 : row % 4 < 2 ? gamma : std::sqrt(gamma);
    CHECK(clipped_q[static_cast<size_t>(i)] == doctest::Approx(factor * q[static_cast<size_t>(i)]).epsilon(1e-12));
  }
  const std::vector<double> clipped_kv_b = bench.weights("self_attn.kv_b_proj.weight");
  for (int64_t i = 0; i < std::ssize(kv_b); ++i) {  // rows of 3: of each head two of keys, four of values
    const int64_t row = i / 3;
    const double factor = row / 6 == head && row % 6 < 2 ? std::sqrt(gamma) : 1;
    CHECK(clipped_kv_b[static_cast<size_t>(i)] ==
          doctest::Approx(factor * kv_b[static_cast<size_t>(i)]).epsilon(1e-12));
  }
  CHECK(bench.weights("self_attn.kv_a_proj.weight") == kv_a);
}

TEST_CASE("every attention names the same largest scores: fast, reference, composed, in float and double") {
  const QkvLayout layout = {.n_heads = 4, .n_kv_heads = 2, .head_dim = 8};
  const Buffer values = normal_values({2, 83, layout.width()}, 5, 3.0);
  Tape exact;
  Var exact_qkv = exact.constant(values.tensor());
  const std::vector<double> expected = largest_scores(exact_qkv, exact_qkv, layout, true);
  for (const DType dtype : {DType::float32, DType::float64}) {
    Buffer converted(values.tensor().shape, dtype);
    copy_values(values.tensor(), converted.tensor());
    for (const TapeOptions& options :
         {TapeOptions{}, TapeOptions{.kernels = Kernels::reference}, TapeOptions{.ops = Ops::composed}}) {
      Tape tape(options);
      Var qkv = tape.constant(converted.tensor());
      const std::vector<double> found = largest_scores(qkv, causal_attention(qkv, layout), layout, true);
      for (size_t h = 0; h < found.size(); ++h) {
        CHECK(found[h] == doctest::Approx(expected[h]).epsilon(dtype == DType::float64 ? 1e-12 : 1e-5));
      }
    }
  }
  CHECK(largest_of(largest_scores(exact_qkv, exact_qkv, layout, false)) >= largest_of(expected));
}

TEST_CASE("normalised queries are not clipped: they do not follow the weights' size") {
  ModelConfig config;
  config.qk_norm = true;
  config.qk_clip = 1e-3;
  ScoredAttention bench(config);
  const Buffer x = normal_values({1, T, 12}, 9);
  const std::vector<double> before = bench.run(x);
  bench.store().updated();
  CHECK(bench.run(x) == before);
}
