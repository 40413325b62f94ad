// QK-Clip: after an update no score that was seen would exceed the threshold.

#include "nn/attention.h"
#include "tests/autograd/op_test.h"

#include <doctest/doctest.h>

#include <cmath>

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
      if (std::string_view(node.op) == "rope") {
        Var qkv = tape.var(node);
        return largest_scores(qkv, qkv, layout_of(config_), true);
      }
    }
    FAIL("no rotated queries and keys");
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
    int64_t kv_heads;
    bool bias;
    const char* gate;
  };
  for (const Row& row : {Row{"own keys", 4, false, "none"}, Row{"shared keys", 2, true, "none"},
                         Row{"a gate among the queries", 1, true, "elementwise"}}) {
    CAPTURE(row.what);
    ModelConfig config;
    config.n_kv_heads = row.kv_heads;
    config.bias = row.bias;
    config.attention_gate = row.gate;
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
