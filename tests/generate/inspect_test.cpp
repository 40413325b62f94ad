// What `minillm inspect` tells of a text, where the values are known.

#include "generate/inspect.h"

#include "data/word_table.h"
#include "tests/set_weights.h"
#include "tests/small_model.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace minillm;
using minillm::test::set_weights;

namespace {

using Ids = std::vector<int32_t>;
using Change = std::function<void(ModelConfig&)>;

const Ids six_ids = {1, 7, 14, 21, 28, 35};
const auto nothing = [](int64_t, double) { return 0.0; };

ModelConfig two_layers(const Change& change = {}) {
  ModelConfig config = small_model(50, 16);
  if (change) {
    change(config);
  }
  derive(config, 0, 8);
  return config;
}

/// A model whose weights are large enough for attention that is not even.
std::unique_ptr<Transformer> made(const ModelConfig& config, DType dtype = DType::float32) {
  auto model = std::make_unique<Transformer>(config);
  model->allocate(dtype, 3, false);
  set_weights(*model, "_proj.weight", [](int64_t, double was) { return 10 * was; });
  return model;
}

Inspection of(const Change& change, DType dtype = DType::float32, const Ids& ids = six_ids) {
  return inspect(*made(two_layers(change), dtype), ids);
}

double even_entropy(int64_t T) {
  double sum = 0;
  for (int64_t t = 0; t < T; ++t) {
    sum += std::log(static_cast<double>(t + 1));
  }
  return sum / static_cast<double>(T);
}

/// Lengths of the gradient of the mean next-token loss, by the fused ops that training runs: all parameters together,
/// and those whose name begins so.
struct TrainedGradient {
  double loss = 0;
  std::function<double(const std::string& begin)> length;
};

TrainedGradient trained_gradient(Transformer& model, const Ids& ids) {
  model.parameters().zero_gradients();
  Tape tape;
  Batch batch;
  batch.batch_size = 1;
  batch.seq_len = static_cast<int64_t>(ids.size());
  batch.inputs = ids;
  batch.targets = {ids.begin() + 1, ids.end()};
  batch.targets.push_back(-1);
  const Var loss = model.forward(tape, batch);
  tape.backward(loss);
  model.parameters().finish_gradients();
  return {loss.item(), [&model](const std::string& begin) {
            double squares = 0;
            for (const NamedTensor& tensor : model.parameters().named_tensors()) {
              for (int64_t i = 0; tensor.name.starts_with(begin) && i < tensor.grad.numel(); ++i) {
                squares += tensor.grad.at(i) * tensor.grad.at(i);
              }
            }
            return std::sqrt(squares);
          }};
}

}  // namespace

TEST_CASE("even attention has the largest entropy, and gives the first token what it gives all") {
  const std::unique_ptr<Transformer> model = made(two_layers());
  set_weights(*model, "q_proj.weight", nothing);
  const Inspection inspection = inspect(*model, six_ids);
  CHECK(inspection.largest_entropy == doctest::Approx(even_entropy(6)));
  const double even = (1.0 / 2 + 1.0 / 3 + 1.0 / 4 + 1.0 / 5 + 1.0 / 6) / 5;
  for (const LayerInspection& layer : inspection.layers) {
    REQUIRE(layer.heads.size() == 4);
    for (const HeadAttention& head : layer.heads) {
      CHECK(head.entropy == doctest::Approx(even_entropy(6)));
      CHECK(head.first_token_share == doctest::Approx(even));
    }
  }
}

TEST_CASE("heads are told apart: weights of 3/4 and 1/4 in one, even ones in the others") {
  const ModelConfig config = two_layers([](ModelConfig& c) { c.position = "learned", c.bias = true; });
  const std::unique_ptr<Transformer> model = made(config);
  // Position 0 is sqrt(16) in its first channel behind the norm, position 1 nothing; only there keys are a in each
  // element of head 2. Its query is 1 in each, so that the score of key 0 is 4 a / sqrt(4), which shall be ln 3.
  const double a = std::log(3.0) / 2;
  set_weights(*model, "embed_tokens.weight", nothing);
  set_weights(*model, "embed_positions.weight", [](int64_t i, double) { return i == 0 ? 1e3 : 0.0; });
  set_weights(*model, "k_proj.weight", [a](int64_t i, double) { return i % 16 == 0 && i / 16 / 4 == 2 ? a / 4 : 0.0; });
  set_weights(*model, "q_proj.weight", nothing);
  set_weights(*model, "q_proj.bias", [](int64_t, double) { return 1.0; });
  const std::vector<HeadAttention> heads = inspect(*model, Ids{1, 2}).layers[0].heads;
  const double of_quarters = -0.75 * std::log(0.75) - 0.25 * std::log(0.25);
  CHECK(heads[2].entropy == doctest::Approx(of_quarters / 2));  // query 0 sees itself alone
  CHECK(heads[2].first_token_share == doctest::Approx(0.75));
  for (const size_t h : {0, 1, 3}) {
    CHECK(heads[h].entropy == doctest::Approx(std::log(2.0) / 2));
    CHECK(heads[h].first_token_share == doctest::Approx(0.5));
  }
}

TEST_CASE("every mixer with attention weights has heads, and only such ones") {
  const auto heads_of = [](const Change& change) {
    std::vector<size_t> counts;
    for (const LayerInspection& layer : of(change).layers) {
      counts.push_back(layer.heads.size());
    }
    return counts;
  };
  CHECK(heads_of([](ModelConfig& c) { c.n_kv_heads = 2; }) == std::vector<size_t>{4, 4});
  CHECK(heads_of([](ModelConfig& c) { c.attention = "mla"; }) == std::vector<size_t>{4, 4});
  CHECK(heads_of([](ModelConfig& c) { c.attention = "gdn"; }) == std::vector<size_t>{0, 0});
  CHECK(heads_of([](ModelConfig& c) { c.attention = "hybrid", c.full_attention_every = 2; }) ==
        std::vector<size_t>{0, 4});
}

TEST_CASE("D22: the last stream is the embedding plus all writes") {
  const std::vector<Change> sums = {
      [](ModelConfig&) {},
      [](ModelConfig& c) { c.norm_position = "sublayer_output"; },
      [](ModelConfig& c) { c.norm = "layernorm", c.bias = true, c.position = "learned"; },
      [](ModelConfig& c) { c.ffn = "none"; },
      [](ModelConfig& c) { c.ffn = "moe", c.moe_experts = 3; },
      [](ModelConfig& c) { c.attention = "gdn"; },
      [](ModelConfig& c) { c.norm_position = "post", c.norm = "none"; },
  };
  for (const Change& change : sums) {
    CAPTURE(two_layers(change).norm_position);
    const ResidualSum in_float = of(change).sum;
    CHECK(in_float.reason.empty());
    CHECK(in_float.largest > 0.01);
    CHECK(in_float.difference < 1e-5 * in_float.largest);
    const ResidualSum in_double = of(change, DType::float64).sum;
    CHECK(in_double.difference < 1e-12 * in_double.largest);
  }
}

TEST_CASE("D22: the largest value of the last stream, and the size of each write") {
  const std::unique_ptr<Transformer> model = made(two_layers());
  set_weights(*model, "layers.1.mlp.down_proj.weight", nothing);
  set_weights(*model, "layers.0.self_attn.o_proj.weight", nothing);
  set_weights(*model, "embed_tokens.weight", [](int64_t i, double was) { return i == 7 * 16 ? -40.0 : was; });
  const Inspection inspection = inspect(*model, six_ids);
  CHECK(inspection.sum.largest == doctest::Approx(40).epsilon(0.1));
  CHECK(inspection.layers[0].mixer.rms == 0);
  CHECK(inspection.layers[1].ffn.rms == 0);
  CHECK(inspection.layers[0].ffn.rms > 0);
  CHECK(inspection.layers[1].mixer.rms > 0);
  CHECK(inspection.embedding_write.rms == inspection.embedding.rms);
}

TEST_CASE("D22: where something else stands between additions, it is said what") {
  const auto reason = [](const Change& change) {
    const Inspection inspection = of(change);
    CHECK(std::isnan(inspection.sum.difference));
    CHECK(std::isnan(inspection.layers[0].mixer.rms));
    CHECK(std::isnan(inspection.embedding_write.logit));
    return inspection.sum.reason;
  };
  CHECK(reason([](ModelConfig& c) { c.norm_position = "post"; }).find("norm_position = \"post\"") == 6);
  CHECK(reason([](ModelConfig& c) { c.norm_position = "post", c.norm = "layernorm"; }).find("post") < 30);
  for (const char* residual : {"none", "mhc", "gated", "attnres"}) {
    CAPTURE(residual);
    CHECK(reason([&](ModelConfig& c) { c.residual = residual; }).find(residual) < 30);
  }
}

TEST_CASE("logits of the next token are taken apart into writes, against the logits of the fused ops") {
  for (const char* norm : {"rmsnorm", "zero_centered_rmsnorm", "scalenorm", "none", "layernorm"}) {
    for (const bool tied : {true, false}) {
      CAPTURE(norm);
      const std::unique_ptr<Transformer> model =
          made(two_layers([&](ModelConfig& c) { c.norm = norm, c.tie_embeddings = tied; }), DType::float64);
      set_weights(*model, "model.norm.weight",
                  [](int64_t i, double was) { return was + 0.1 * static_cast<double>(i); });
      Tape tape({.record = false});
      const std::vector<double> logits = numbers_of(model->logits(tape, six_ids, 1).value());
      double expected = 0;
      for (size_t t = 0; t < 5; ++t) {
        double mean = 0;
        for (size_t v = 0; v < 50; ++v) {
          mean += logits[t * 50 + v] / 50;
        }
        expected += (logits[t * 50 + static_cast<size_t>(six_ids[t + 1])] - mean) / 5;
      }
      const Inspection inspection = inspect(*model, six_ids);
      CHECK(inspection.next_token_logit == doctest::Approx(expected).epsilon(1e-9));
      double sum = inspection.embedding_write.logit;
      for (const LayerInspection& layer : inspection.layers) {
        sum += layer.mixer.logit + layer.ffn.logit;
      }
      if (std::string(norm) == "layernorm") {
        CHECK(std::isnan(sum));
      } else {
        CHECK(sum == doctest::Approx(expected).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("loss and gradients of parameters are those of the fused ops that training runs") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const double exact = dtype == DType::float32 ? 1e-5 : 1e-12;
    const std::unique_ptr<Transformer> model = made(two_layers(), dtype);
    const Inspection inspection = inspect(*model, six_ids);
    const TrainedGradient expected = trained_gradient(*model, six_ids);
    CHECK(inspection.loss == doctest::Approx(expected.loss).epsilon(exact));
    CHECK(inspection.gradient_norm == doctest::Approx(expected.length("")).epsilon(exact));
    for (size_t l = 0; l < 2; ++l) {
      CHECK(inspection.layers[l].parameter_gradient ==
            doctest::Approx(expected.length(fmt::format("model.layers.{}.", l))).epsilon(exact));
    }
    CHECK(inspection.layers[0].parameter_gradient != inspection.layers[1].parameter_gradient);
    const Inspection again = inspect(*model, six_ids);  // gradients of a text do not add to an earlier one's
    CHECK(again.gradient_norm == inspection.gradient_norm);
  }
}

TEST_CASE("gradients of the stream: of two tokens only the first is read, so a bias' gradient is the stream's") {
  const ModelConfig config = two_layers([](ModelConfig& c) { c.bias = true, c.tie_embeddings = false; });
  const std::unique_ptr<Transformer> model = made(config, DType::float64);
  const Ids two = {3, 4};
  const Inspection inspection = inspect(*model, two);
  const TrainedGradient expected = trained_gradient(*model, two);
  CHECK(inspection.embedding_gradient ==
        doctest::Approx(expected.length("model.embed_tokens")).epsilon(1e-12));  // untied: the row of token 3
  for (size_t l = 0; l < 2; ++l) {
    const std::string bias = fmt::format("model.layers.{}.mlp.down_proj.bias", l);
    CHECK(inspection.layers[l].stream_gradient == doctest::Approx(expected.length(bias)).epsilon(1e-12));
  }
}

TEST_CASE("gradients of the stream against a central difference") {
  const std::unique_ptr<Transformer> model =
      made(two_layers([](ModelConfig& c) { c.tie_embeddings = false; }), DType::float64);
  const double length = inspect(*model, six_ids).embedding_gradient;
  // Each of the six embeddings is moved along its own gradient; the slope of the loss is then the gradient's length.
  const std::vector<NamedTensor> tensors = model->parameters().named_tensors();
  const Tensor table = tensors.front().value;
  const std::vector<double> start = numbers_of(table);
  const std::vector<double> direction = numbers_of(tensors.front().grad);
  const auto loss_at = [&](double step) {
    for (int64_t i = 0; i < table.numel(); ++i) {
      table.set(i, start[static_cast<size_t>(i)] + step * direction[static_cast<size_t>(i)] / length);
    }
    return inspect(*model, six_ids).loss;
  };
  REQUIRE(tensors.front().name == "model.embed_tokens.weight");
  CHECK((loss_at(1e-5) - loss_at(-1e-5)) / 2e-5 == doctest::Approx(length).epsilon(1e-6));
}

TEST_CASE("the stream's gradient is there for every residual connection that hands on one state") {
  for (const char* residual : {"plain", "none", "mhc", "gated", "attnres"}) {
    CAPTURE(residual);
    const Inspection inspection = of([&](ModelConfig& c) { c.residual = residual; });
    for (const LayerInspection& layer : inspection.layers) {
      CHECK((layer.stream_gradient > 0) == (std::string(residual) != "attnres"));
      CHECK(layer.parameter_gradient > 0);
    }
  }
}

TEST_CASE("a single token has neither pairs nor a next one") {
  const Inspection inspection = of({}, DType::float32, {1});
  CHECK(inspection.tokens == 1);
  CHECK(inspection.no_loss.find("no next one") != std::string::npos);
  CHECK(std::isnan(inspection.loss));
  CHECK(inspection.largest_entropy == 0);
  CHECK(inspection.sum.difference < 1e-6);
  for (const LayerInspection& layer : inspection.layers) {
    CHECK(layer.heads[0].entropy == 0);
    CHECK(std::isnan(layer.heads[0].first_token_share));
    CHECK(std::isnan(layer.statistics.token_cosine));
    CHECK(std::isnan(layer.stream_gradient));
    CHECK(std::isnan(layer.mixer.logit));
    CHECK(layer.mixer.rms > 0);
  }
}

TEST_CASE("an encoder sees all tokens and predicts none") {
  const std::unique_ptr<Transformer> model = made(two_layers([](ModelConfig& c) { c.causal = false; }));
  set_weights(*model, "q_proj.weight", nothing);
  const Inspection inspection = inspect(*model, six_ids, 6);
  CHECK(inspection.no_loss.find("causal = false") != std::string::npos);
  CHECK(inspection.layers[1].heads[3].entropy == doctest::Approx(std::log(6.0)));
  CHECK(inspection.largest_entropy == doctest::Approx(std::log(6.0)));
  CHECK(inspection.layers[0].weights[5] == doctest::Approx(1.0 / 6));
  CHECK(inspection.sum.difference < 1e-6);
}

TEST_CASE("means and deviations of the stream") {
  const Moments four = moments({1, 1, 4, 4});
  CHECK(four.mean == 2.5);
  CHECK(four.std == 1.5);
  CHECK(four.rms == doctest::Approx(std::sqrt(8.5)));
  const Inspection inspection = of({});
  const Moments& stream = inspection.layers[1].stream;
  CHECK(stream.rms == inspection.layers[1].statistics.stream_rms);
  CHECK(stream.rms * stream.rms == doctest::Approx(stream.mean * stream.mean + stream.std * stream.std));
}

TEST_CASE("weights for maps: those of the first tokens, of which a page holds a bounded number") {
  const std::unique_ptr<Transformer> model = made(two_layers());
  CHECK(inspect(*model, six_ids).layers[0].weights.empty());
  const std::vector<float> all = inspect(*model, six_ids, 6).layers[1].weights;
  const std::vector<float> first = inspect(*model, six_ids, 3).layers[1].weights;
  REQUIRE(all.size() == 4 * 6 * 6);
  REQUIRE(first.size() == 4 * 3 * 3);
  for (size_t h = 0; h < 4; ++h) {
    for (size_t t = 0; t < 3; ++t) {
      double sum = 0;
      for (size_t u = 0; u < 3; ++u) {
        CHECK(first[(h * 3 + t) * 3 + u] == all[(h * 6 + t) * 6 + u]);
        sum += static_cast<double>(first[(h * 3 + t) * 3 + u]);
      }
      CHECK(sum == doctest::Approx(1));
    }
  }
  ModelConfig config = two_layers();
  CHECK(tokens_for_maps(config, 6) == 6);
  CHECK(tokens_for_maps(config, 5000) == 256);
  config.n_layers = 80;
  config.n_heads = 64;
  CHECK(tokens_for_maps(config, 5000) == 39);
  config.n_layers = 10'000'000;
  CHECK(tokens_for_maps(config, 5000) == 1);
}

TEST_CASE("every token has a label that can be printed") {
  const std::vector<std::string> words = {" see",    std::string(1, '\0'), "\xff",     "a\n",
                                          "\x1b[2J", "\xf0\x9f\x98\x80",   "\xc2\x9b", "\xf0\x9f"};
  const std::vector<std::string> expected = {"\xe2\x96\x81see", "<0x00>",           "<0xFF>",       "a<0x0A>",
                                             "<0x1B>[2J",       "\xf0\x9f\x98\x80", "<0xC2><0x9B>", "<0xF0><0x9F>"};
  const WordTable table(words);
  for (size_t i = 0; i < words.size(); ++i) {
    CHECK(token_label(table, static_cast<int32_t>(i) + 3) == expected[i]);
  }
  CHECK(token_label(table, 0) == "<unk>");
  CHECK(token_label(table, 1) == "<s>");
}

TEST_CASE("JSON: null for what is not there, with a reason") {
  JsonObject json;
  add_numbers(of([](ModelConfig& c) { c.residual = "none"; }, DType::float32, {1}), json);
  const std::string text = json.text();
  for (const char* part : {"\"loss\":null", "\"no_loss\":\"a single token", "\"difference\":null",
                           "\"reason\":\"model.residual = \\\"none\\\"", "\"mixer_write_rms\":null",
                           "\"heads\":[{\"entropy\":0,\"first_token_share\":null}", "\"stream_gradient\":null"}) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  }
}
