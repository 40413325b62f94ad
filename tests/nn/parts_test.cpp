// What parts have in common with each other: identities that hold whatever the weights are.

#include "nn/block.h"
#include "nn/sinkhorn.h"
#include "tests/autograd/op_test.h"

#include <doctest/doctest.h>

#include <functional>

using namespace minillm;
using test::difference;
using test::normal_values;
using test::values_of;

namespace {

/// A part alone with weights to set, and what came out of it.
class LonePart {
 public:
  using Make = std::function<std::unique_ptr<Sublayer>(const ModelConfig&, const Scope&, const RopeTable&)>;

  LonePart(ModelConfig config, int64_t T, const Make& make) : config_(derived(std::move(config), T)), rope_(config_) {
    part_ = make(config_, Scope(store_, ""), rope_);
    store_.allocate(DType::float64);
    rope_.allocate(DType::float64);
    for (const NamedTensor& tensor : store_.named_tensors()) {
      fill(tensor.name, normal_values(tensor.value.shape, random_key(1, tensor.name), 0.4));
    }
  }

  Tensor weight(std::string_view name) const {
    for (const NamedTensor& tensor : store_.named_tensors()) {
      if (tensor.name == name) {
        return tensor.value;
      }
    }
    FAIL("no weight " << std::string(name));
    return {};
  }

  void fill(std::string_view name, const Buffer& values) const { copy_values(values.tensor(), weight(name)); }

  /// Output and gradient of x of a fixed projection.
  test::Outcome run(const Buffer& x) {
    return test::run([&](Tape&, const std::vector<Var>& inputs) { return part_->forward(inputs[0]); },
                     test::list(copy_of(x)), DType::float64);
  }

  const ModelConfig& config() const { return config_; }

 private:
  static ModelConfig derived(ModelConfig config, int64_t T) {
    config.vocab_size = 11;
    config.max_seq_len = T;
    derive(config, 0, T);
    return config;
  }

  static Buffer copy_of(const Buffer& x) {
    Buffer copy(x.tensor().shape, DType::float64);
    copy_values(x.tensor(), copy.tensor());
    return copy;
  }

  ModelConfig config_;
  ParameterStore store_;
  RopeTable rope_;
  std::unique_ptr<Sublayer> part_;
};

std::unique_ptr<Sublayer> mixer(const ModelConfig& config, const Scope& scope, const RopeTable& rope) {
  return make_mixer(config, scope, rope, 0);
}

std::unique_ptr<Sublayer> ffn(const ModelConfig& config, const Scope& scope, const RopeTable&) {
  return make_ffn(config, scope / "mlp");
}

ModelConfig small() {
  ModelConfig config;
  config.d_model = 16;
  config.n_heads = 4;
  config.d_ff = 12;
  return config;
}

LonePart gated_deltanet(const char* form, int64_t T) {
  ModelConfig config = small();
  config.attention = "gdn";
  config.gdn_form = form;
  return LonePart(config, T, mixer);
}

/// Values of `source` in the shape of a weight that holds the same numbers.
void copy_weight(const LonePart& from, std::string_view source, const LonePart& to, std::string_view target) {
  const Tensor values = from.weight(source);
  const Tensor place = to.weight(target);
  REQUIRE(values.numel() == place.numel());
  copy_values({values.data, place.shape, values.dtype}, place);
}

}  // namespace

TEST_CASE("chunked gated DeltaNet is the recurrent one, over several chunks and a short last one") {
  const int64_t T = 150;
  LonePart chunked = gated_deltanet("chunked", T);
  LonePart recurrent = gated_deltanet("recurrent", T);
  const Buffer x = normal_values({2, T, 16}, 3);
  CHECK(difference(chunked.run(x), recurrent.run(x)) < 1e-11);
}

TEST_CASE("chunked gated DeltaNet is the recurrent one where all keys are the same and nothing is forgotten") {
  const int64_t T = 64;
  LonePart chunked = gated_deltanet("chunked", T);
  LonePart recurrent = gated_deltanet("recurrent", T);
  for (const LonePart* bench : {&chunked, &recurrent}) {
    const Tensor rates = bench->weight("linear_attn.A_log");
    for (int64_t i = 0; i < rates.numel(); ++i) {
      rates.set(i, -10);
    }
  }
  Buffer x({1, T, 16}, DType::float64);
  const Buffer token = normal_values({16}, 3);
  for (int64_t i = 0; i < T * 16; ++i) {
    x.tensor().set(i, token.tensor().at(i % 16));
  }
  CHECK(difference(chunked.run(x), recurrent.run(x)) < 1e-9);
}

TEST_CASE("a mixture of one expert is the dense network") {
  ModelConfig config = small();
  LonePart dense(config, 5, ffn);
  config.ffn = "moe";
  config.moe_experts = 1;
  config.moe_top_k = 1;
  LonePart mixture(config, 5, ffn);
  for (const char* matrix : {"gate_proj.weight", "up_proj.weight", "down_proj.weight"}) {
    copy_weight(dense, std::string("mlp.") + matrix, mixture, std::string("mlp.experts.") + matrix);
  }
  const Buffer x = normal_values({2, 5, 16}, 3);
  CHECK(difference(mixture.run(x), dense.run(x)) < 1e-14);
}

TEST_CASE("grouped keys and values are the same as a copy for each head") {
  const int64_t T = 7;
  ModelConfig config = small();
  config.n_kv_heads = 2;
  LonePart grouped(config, T, mixer);
  config.n_kv_heads = 4;
  LonePart each(config, T, mixer);
  for (const char* same : {"self_attn.q_proj.weight", "self_attn.o_proj.weight"}) {
    copy_weight(grouped, same, each, same);
  }
  for (const char* shared : {"self_attn.k_proj.weight", "self_attn.v_proj.weight"}) {
    const Tensor from = grouped.weight(shared);  // [2 * 4, 16]
    const Tensor to = each.weight(shared);       // [4 * 4, 16]
    for (int64_t i = 0; i < to.numel(); ++i) {
      const int64_t row = i / 16;
      to.as<double>()[i] = from.at((row / 8 * 4 + row % 4) * 16 + i % 16);
    }
  }
  const Buffer x = normal_values({2, T, 16}, 3);
  CHECK(difference(grouped.run(x), each.run(x)) < 1e-13);
}

TEST_CASE("ScaleNorm is RMSNorm with one gain for all, divided by the square root of the width") {
  ParameterStore store;
  ModelConfig config = small();
  config.norm_eps = 1e-4;
  config.norm = "scalenorm";
  const std::unique_ptr<Norm> scale_norm = make_norm(config, Scope(store, "scale"), 16);
  config.norm = "rmsnorm";
  const std::unique_ptr<Norm> rms_norm = make_norm(config, Scope(store, "rms"), 16);
  store.allocate(DType::float64);
  store.initialize(1);
  CHECK(store.named_tensors()[0].value.at(0) == 4);  // sqrt(16), so that it starts as RMSNorm does
  for (const NamedTensor& tensor : store.named_tensors()) {
    for (int64_t i = 0; i < tensor.value.numel(); ++i) {
      tensor.value.as<double>()[i] = tensor.name == "scale.weight" ? 6 : 1.5;
    }
  }
  const auto with = [](const Norm& norm) {
    return [&norm](Tape&, const std::vector<Var>& inputs) { return norm.forward(inputs[0]); };
  };
  const auto x = [] { return test::list(normal_values({3, 16}, 5)); };
  CHECK(difference(test::run(with(*scale_norm), x(), DType::float64), test::run(with(*rms_norm), x(), DType::float64)) <
        1e-14);
}

TEST_CASE("mHC's mixing matrix is doubly stochastic, so no stream grows") {
  Tape tape;
  const Buffer logits = normal_values({200, 4, 4}, 9);
  Var matrix = mixing_matrix(tape.variable(logits.tensor()), 1e-6);
  double worst_row = 0;
  double worst_column = 0;
  for (int64_t m = 0; m < 200; ++m) {
    for (int64_t i = 0; i < 4; ++i) {
      double row = 0;
      double column = 0;
      for (int64_t j = 0; j < 4; ++j) {
        CHECK(matrix.value().at(m * 16 + i * 4 + j) > 0);
        row += matrix.value().at(m * 16 + i * 4 + j);
        column += matrix.value().at(m * 16 + j * 4 + i);
      }
      worst_row = std::max(worst_row, std::abs(row - 1));
      worst_column = std::max(worst_column, std::abs(column - 1));
    }
  }
  CHECK(worst_row < 1e-3);
  CHECK(worst_column < 1e-5);
}

TEST_CASE("the chosen are the k largest, the earlier of equal ones, and a NaN is not hidden") {
  Tape tape;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Buffer x = test::of({3, 4}, {1, 4, 2, 3, 5, 5, 5, 5, 0, 1, nan, 2});
  Var leaf = tape.variable(x.tensor());
  std::vector<int32_t> index(6);
  Var best = top_k(leaf, 2, index);
  CHECK(index == std::vector<int32_t>{1, 3, 0, 1, 2, 3});
  CHECK(values_of(slice(best, 0, 0, 2).value()) == std::vector<double>{4, 3, 5, 5});
  CHECK(std::isnan(best.value().at(4)));
  CHECK(best.node().distance_to_kink(tape) == 0);
  CHECK_THROWS_WITH_AS(top_k(leaf, 5, index), doctest::Contains("at least 5 columns"), Error);
}

TEST_CASE("a sublayer that writes another shape than it reads is refused before it broadcasts into the stream") {
  class Narrow final : public Sublayer {
   public:
    using Sublayer::Sublayer;
    Var forward(Var x) const override { return slice(x, -1, 0, 1); }
  };
  for (const char* residual : {"plain", "none", "mhc", "gated", "attnres"}) {
    CAPTURE(residual);
    ModelConfig config;
    config.vocab_size = 11;
    config.d_model = 8;
    config.n_heads = 2;
    config.residual = residual;
    derive(config, 0, 4);
    ParameterStore store;
    const Scope scope(store, "");
    const auto connection = make_residual(config, scope / "residual");
    const auto ends = make_stream_ends(config, scope / "stream");
    const auto norm = make_sublayer_norm(config, scope / "norm");
    store.allocate(DType::float64);
    store.initialize(1);
    Tape tape;
    const Buffer x = normal_values({1, 4, 8}, 1);
    Stream stream = ends->enter(tape.variable(x.tensor()));
    CHECK_THROWS_WITH_AS(connection->forward(stream, *norm, Narrow(scope / "narrow")),
                         doctest::Contains("narrow must write the shape it reads, [1, 4, 8]; it wrote [1, 4, 1]"),
                         Error);
  }
}
