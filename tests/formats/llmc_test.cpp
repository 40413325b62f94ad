#include "formats/llmc.h"

#include "nn/transformer.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>

using namespace minillm;
using namespace minillm::test;

namespace {

// magic, version, max_seq_len, vocab_size, num_layers, num_heads, channels, padded_vocab_size
using Header = std::array<int32_t, 8>;
constexpr Header good = {20240326, 3, 2, 3, 2, 2, 4, 5};
constexpr int64_t good_values = 524;

/// A file of llm.c. Value i of it is i, in float32 or, for version 5, i mod 200 in bfloat16.
std::string content(const Header& header, int64_t values = good_values, const std::string& behind = "") {
  std::array<int32_t, 256> words{};
  std::copy(header.begin(), header.end(), words.begin());
  std::string bytes(reinterpret_cast<const char*>(words.data()), sizeof words);
  for (int64_t i = 0; i < values; ++i) {
    const float value = static_cast<float>(header[1] == 5 ? i % 200 : i);
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint16_t upper = static_cast<uint16_t>(bits >> 16);
    header[1] == 5 ? bytes.append(reinterpret_cast<const char*>(&upper), 2)
                   : bytes.append(reinterpret_cast<const char*>(&bits), 4);
  }
  return bytes + behind;
}

/// A good header with another number.
Header with(size_t word, int32_t value) {
  Header header = good;
  header[word] = value;
  return header;
}

/// A model of this config with memory, at its initial values.
std::unique_ptr<Transformer> model_of(ModelConfig config) {
  derive(config, 0, 0);
  auto model = std::make_unique<Transformer>(config);
  model->allocate(DType::float32, 1, false);
  return model;
}

std::map<std::string, Tensor> weights_of(const Transformer& model) {
  std::map<std::string, Tensor> weights;
  for (const NamedTensor& tensor : model.parameters().named_tensors()) {
    weights[std::string(tensor.name)] = tensor.value;
  }
  return weights;
}

/// The one line of the refusal of a file with these bytes, without the path it begins with.
std::string refusal_of_bytes(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::string path = folder.write("model.bin", bytes);
  const std::string message = message_of(Fault::input, [&] { open_foreign_model(path); });
  CHECK(message.rfind(path + ": ", 0) == 0);
  CHECK_FALSE(contains(message, "\n"));
  return message.substr(path.size());
}

/// Where each tensor's values begin, counted by hand from the order in train_gpt2.c: P 5, V 3, T 2, L 2, C 4.
const std::map<std::string, int64_t> first_values = {
    {"model.embed_tokens.weight", 0},  // rows 3 and 4, values 12 to 19, are padding
    {"model.embed_positions.weight", 20},
    {"model.layers.0.input_layernorm.weight", 28},
    {"model.layers.1.input_layernorm.weight", 32},
    {"model.layers.0.input_layernorm.bias", 36},
    {"model.layers.1.input_layernorm.bias", 40},
    {"model.layers.0.self_attn.q_proj.weight", 44},
    {"model.layers.0.self_attn.k_proj.weight", 60},
    {"model.layers.0.self_attn.v_proj.weight", 76},
    {"model.layers.1.self_attn.q_proj.weight", 92},
    {"model.layers.1.self_attn.k_proj.weight", 108},
    {"model.layers.1.self_attn.v_proj.weight", 124},
    {"model.layers.0.self_attn.q_proj.bias", 140},
    {"model.layers.0.self_attn.k_proj.bias", 144},
    {"model.layers.0.self_attn.v_proj.bias", 148},
    {"model.layers.1.self_attn.q_proj.bias", 152},
    {"model.layers.1.self_attn.k_proj.bias", 156},
    {"model.layers.1.self_attn.v_proj.bias", 160},
    {"model.layers.0.self_attn.o_proj.weight", 164},
    {"model.layers.1.self_attn.o_proj.weight", 180},
    {"model.layers.0.self_attn.o_proj.bias", 196},
    {"model.layers.1.self_attn.o_proj.bias", 200},
    {"model.layers.0.post_attention_layernorm.weight", 204},
    {"model.layers.1.post_attention_layernorm.weight", 208},
    {"model.layers.0.post_attention_layernorm.bias", 212},
    {"model.layers.1.post_attention_layernorm.bias", 216},
    {"model.layers.0.mlp.up_proj.weight", 220},
    {"model.layers.1.mlp.up_proj.weight", 284},
    {"model.layers.0.mlp.up_proj.bias", 348},
    {"model.layers.1.mlp.up_proj.bias", 364},
    {"model.layers.0.mlp.down_proj.weight", 380},
    {"model.layers.1.mlp.down_proj.weight", 444},
    {"model.layers.0.mlp.down_proj.bias", 508},
    {"model.layers.1.mlp.down_proj.bias", 512},
    {"model.norm.weight", 516},
    {"model.norm.bias", 520},
};

}  // namespace

TEST_CASE("every tensor of the model is filled once, from its place in the file, in both versions") {
  const TemporaryFolder folder;
  for (const int32_t version : {3, 5}) {
    CAPTURE(version);
    const ForeignModel foreign = open_foreign_model(folder.write("model.bin", content(with(1, version))));
    const auto model = model_of(foreign.config);
    load_into(model->parameters(), foreign.weights);
    const std::map<std::string, Tensor> weights = weights_of(*model);
    CHECK(weights.size() == first_values.size());
    CHECK(foreign.weights.tensors().size() == first_values.size());
    for (const auto& value : first_values) {
      const auto& [name, first] = value;
      CAPTURE(value.first);
      REQUIRE(weights.count(name) == 1);
      const Tensor& tensor = weights.at(name);
      for (int64_t i = 0; i < tensor.numel(); ++i) {
        const int64_t expected = version == 5 ? (first + i) % 200 : first + i;
        REQUIRE(tensor.at(i) == static_cast<double>(expected));
      }
    }
  }
}

TEST_CASE("the padding is dropped, whatever its size") {
  const TemporaryFolder folder;
  for (const int32_t padded : {3, 4, 128}) {
    CAPTURE(padded);
    const std::string bytes = content(with(7, padded), good_values + (padded - 5) * 4);
    const ForeignModel foreign = open_foreign_model(folder.write("model.bin", bytes));
    CHECK(foreign.dropped == (padded == 3 ? "" : fmt::format("{} rows of padding behind the vocabulary", padded - 3)));
    const auto model = model_of(foreign.config);
    load_into(model->parameters(), foreign.weights);
    const std::map<std::string, Tensor> weights = weights_of(*model);
    CHECK(weights.at("model.embed_tokens.weight").shape == Shape{3, 4});
    CHECK(weights.at("model.embed_tokens.weight").at(11) == 11);
    CHECK(weights.at("model.embed_positions.weight").at(0) == padded * 4);
    CHECK(weights.at("model.norm.bias").at(3) == static_cast<double>(good_values - 1 + (padded - 5) * 4));
  }
}

TEST_CASE("the config is GPT-2's, in the sizes of the header") {
  const TemporaryFolder folder;
  const ForeignModel foreign = open_foreign_model(folder.write("model.bin", content(good)));
  CHECK(foreign.format == "llm.c, GPT-2, version 3 (float32)");
  const ModelConfig config = model_of(foreign.config)->config();
  CHECK(config.vocab_size == 3);
  CHECK(config.max_seq_len == 2);
  CHECK(config.n_layers == 2);
  CHECK(config.n_heads == 2);
  CHECK(config.n_kv_heads == 2);
  CHECK(config.d_model == 4);
  CHECK(config.head_dim == 2);
  CHECK(config.d_ff == 16);
  CHECK(config.tie_embeddings);
  CHECK(config.bias);
  CHECK(config.position == "learned");
  CHECK(config.norm == "layernorm");
  CHECK(config.norm_eps == 1e-5);
  CHECK(config.norm_position == "pre");
  CHECK(config.final_norm == 1);
  CHECK(config.ffn == "gelu_tanh");
}

TEST_CASE("a model with a tensor that the file has not is refused, none is left as it started") {
  const TemporaryFolder folder;
  const ForeignModel foreign = open_foreign_model(folder.write("model.bin", content(good)));
  ModelConfig untied = foreign.config;
  untied.tie_embeddings = false;
  CHECK_THROWS_AS(load_into(model_of(untied)->parameters(), foreign.weights), Error);
  ModelConfig deeper = foreign.config;
  deeper.n_layers = 3;
  const auto model = model_of(deeper);
  CHECK_CONTAINS(message_of(Fault::input, [&] { load_into(model->parameters(), foreign.weights); }),
                 "16 missing in the file: model.layers.2.");
}

TEST_CASE("two tensors of one name are refused") {
  const TemporaryFolder folder;
  const std::string path = folder.write("model.bin", content(good));
  const StoredTensor tensor = {"a", "F32", {1}, 0, 4};
  CHECK_THROWS_AS(WeightFile(path, open_for_reading(path), {tensor, tensor}), Error);
}

TEST_CASE("other versions are refused") {
  for (const int32_t version : {1, 2, 4, 6, -3}) {
    CHECK_CONTAINS(refusal_of_bytes(content(with(1, version))),
                   fmt::format("found version {}; expected 3 (float32) or 5 (bfloat16); write it again", version));
  }
}

TEST_CASE("impossible sizes are refused before anything is computed from them") {
  const std::map<size_t, std::string> names = {
      {2, "max_seq_len"}, {3, "vocab_size"}, {4, "num_layers"}, {5, "num_heads"}, {6, "channels"}};
  for (const auto& [word, name] : names) {
    for (const int32_t value : {0, -1, INT32_MIN}) {
      CHECK_CONTAINS(refusal_of_bytes(content(with(word, value))),
                     fmt::format("the header cannot be right: {}; found {}; expected at least", name, value));
    }
  }
  CHECK_CONTAINS(refusal_of_bytes(content(with(3, 1))), "vocab_size; found 1; expected at least 2");
  CHECK_CONTAINS(refusal_of_bytes(content(with(7, 2))), "padded_vocab_size; found 2; expected at least 3");
  CHECK_CONTAINS(refusal_of_bytes(content(with(7, 0))), "of an early llm.c");
  CHECK_CONTAINS(refusal_of_bytes(content(with(5, 3))),
                 "num_heads does not divide channels; found 3; expected a divisor of 4");
  for (const size_t word : {2U, 4U, 7U}) {
    CHECK_CONTAINS(refusal_of_bytes(content(with(word, INT32_MAX))),
                   "shorter than its header says; found 3120 bytes; expected");
  }
  Header header = good;
  header[6] = INT32_MAX - 1;  // 12 C C L is beyond 64 bits
  header[4] = INT32_MAX;
  CHECK_CONTAINS(refusal_of_bytes(content(header)),
                 "expected more than any file has for 2147483647 layers of 2147483646 channels");
  header[2] = header[3] = header[7] = INT32_MAX;
  CHECK_CONTAINS(refusal_of_bytes(content(header)), "more than any file has");
}

TEST_CASE("a file that is shorter or longer than its header is refused, by a byte too") {
  const std::string sizes =
      "expected 3120 bytes for 2 layers of 4 channels, 2 heads, 2 positions, a vocabulary of 3 padded to 5";
  CHECK_CONTAINS(refusal_of_bytes(content(good, good_values - 1)),
                 "the file is shorter than its header says; found 3116 bytes; " + sizes);
  CHECK_CONTAINS(refusal_of_bytes(content(good, good_values - 1, "abc")),
                 "shorter than its header says; found 3119 bytes");
  CHECK_CONTAINS(refusal_of_bytes(content(good, good_values, "a")),
                 "the file is longer than its header says; found 3121 bytes; " + sizes);
  CHECK_CONTAINS(refusal_of_bytes(content(good, 0)), "shorter than its header says; found 1024 bytes");
  CHECK_CONTAINS(refusal_of_bytes(content(good).substr(0, 1023)),
                 "ends inside the header of llm.c's checkpoints; found 1023 bytes; expected at least 1024");
  CHECK_CONTAINS(refusal_of_bytes(content(good).substr(0, 4)), "ends inside the header");
  // bfloat16, of the size that float32 would have
  CHECK_CONTAINS(refusal_of_bytes(content(with(1, 5), good_values, std::string(2 * good_values, '\0'))),
                 "longer than its header says; found 3120 bytes; expected 2072 bytes");
}

TEST_CASE("files that are no models are named") {
  CHECK_CONTAINS(refusal_of_bytes("Once upon a time"),
                 "is not a model that can be imported; found text; expected a GPT-2 checkpoint of llm.c");
  CHECK_CONTAINS(refusal_of_bytes(""), "found an empty file");
  CHECK_CONTAINS(
      refusal_of_bytes("minillm-file\n"),
      "found a minillm file; expected a GPT-2 checkpoint of llm.c or GGUF or a model of llama2.c; minillm eval");
  CHECK_CONTAINS(refusal_of_bytes(std::string("\x02\0\0\0\0\0\0\0{}", 10)), "found safetensors; ");
  CHECK_CONTAINS(refusal_of_bytes("PK\x03\x04"), "PyTorch checkpoint");
  CHECK_CONTAINS(refusal_of_bytes("\x01\x34\xd7\xc6" + std::string(1020, '\0')), "found unknown binary data");
  CHECK_CONTAINS(refusal_of_bytes(content(with(0, 20240520))), "found a token file of llm.c; ");
  CHECK_CONTAINS(refusal_of_bytes(content(with(0, 20240520))), "minillm import-tokens makes a data file of it");
  CHECK_CONTAINS(refusal_of_bytes(content(with(0, 20240803))), "found a Llama 3 model of llm.c; ");
  const TemporaryFolder folder;
  CHECK_CONTAINS(message_of(Fault::input, [&] { open_foreign_model(folder / "none.bin"); }),
                 "none.bin: cannot be opened: No such file");
}
