#include "core/error.h"
#include "formats/safetensors.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

#include <doctest/doctest.h>

#include <cstring>

using namespace minillm;
using namespace minillm::test;

namespace {

/// A store like a small tied model's: an embedding, a merged qk matrix, a norm.
void declare(ParameterStore& store, int64_t d = 3, bool untied = false, DType dtype = DType::float32) {
  const Init init = Init::normal(1);
  store.declare("model.embed_tokens.weight", {5, d}, init);
  store.declare_merged("qk", {{"q_proj.weight", 2, init}, {"k_proj.weight", 4, init}}, d);
  store.declare("model.norm.weight", {d}, Init::constant(1));
  if (untied) {
    store.declare("lm_head.weight", {5, d}, init);
  }
  store.allocate(dtype);
  store.initialize(7);
}

bool same_weights(const ParameterStore& a, const ParameterStore& b) {
  return a.weights().bytes() == b.weights().bytes() &&
         std::memcmp(a.weights().data, b.weights().data, a.weights().bytes()) == 0;
}

std::string refusal(ParameterStore& store, const std::string& path) {
  const Buffer before(store.weights().shape, store.dtype());
  copy_values(store.weights(), before.tensor());
  try {
    load_into(store, path);
    return "";
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::input);
    CHECK(std::memcmp(before.tensor().data, store.weights().data, store.weights().bytes()) == 0);
    return error.what();
  }
}

}  // namespace

TEST_CASE("weights go out and come back, each named slice in its rows") {
  const TemporaryFolder folder;
  const std::string path = folder / "w.safetensors";
  ParameterStore from;
  declare(from);
  save_weights(from, path);
  const SafetensorsFile file(path);
  CHECK(file.tensors().size() == 4);
  CHECK(file.find("qk") == nullptr);
  CHECK(file.find("k_proj.weight")->shape == Shape{4, 3});
  ParameterStore to;
  declare(to);
  to.initialize(8);
  REQUIRE_FALSE(same_weights(from, to));
  load_into(to, path);
  CHECK(same_weights(from, to));
  ParameterStore wide;
  declare(wide, 3, false, DType::float64);
  load_into(wide, path);
  CHECK(wide.named_tensors()[2].value.at(11) == from.named_tensors()[2].value.at(11));
}

TEST_CASE("one error lists what is missing, unexpected and different, and no value moves") {
  const TemporaryFolder folder;
  const std::string path = folder / "w.safetensors";
  const Buffer values({64}, DType::float32);
  const auto tensor = [&](const char* name, const Shape& shape) {
    return TensorToSave{name, {values.tensor().data, shape, DType::float32}};
  };
  const std::vector<TensorToSave> tensors = {tensor("model.embed_tokens.weight", {5, 3}),
                                             tensor("q_proj.weight", {3, 3}), tensor("extra.weight", {2}),
                                             tensor("model.norm.weight", {1, 3})};
  write_safetensors(path, tensors);
  ParameterStore store;
  declare(store);
  const std::string message = refusal(store, path);
  CHECK(contains(message, path));
  CHECK(contains(message, "1 missing in the file: k_proj.weight"));
  CHECK(contains(message, "1 not in the model: extra.weight"));
  CHECK(contains(message, "2 different: q_proj.weight [3, 3] (the model's is [2, 3])"));
  CHECK(contains(message, "model.norm.weight [1, 3] (the model's is [3])"));
}

TEST_CASE("a head that repeats the embedding is not needed by a tied model, another head is an error") {
  const TemporaryFolder folder;
  const std::string path = folder / "w.safetensors";
  ParameterStore untied;
  declare(untied, 3, true);
  ParameterStore tied;
  declare(tied);
  save_weights(untied, path);
  CHECK(contains(refusal(tied, path), "model.tie_embeddings = false"));
  copy_values(untied.named_tensors()[0].value, untied.named_tensors()[4].value);
  save_weights(untied, path);
  CHECK(refusal(tied, path).empty());
  save_weights(tied, path);
  CHECK(contains(refusal(untied, path), "model.tie_embeddings = true"));
}
