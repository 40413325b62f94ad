#include "train/initial_weights.h"

#include "formats/safetensors.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"
#include "train/checkpoint.h"
#include "train/complete_config.h"
#include "train/run_folder.h"

#include <doctest/doctest.h>

#include <limits>

using namespace minillm;
using namespace minillm::test;

namespace {

constexpr int64_t changed_element = 3;

/// A float64 model of a few weights as a run's folder and as a safetensors file, one of its weights changed.
struct Source {
  Source(const TemporaryFolder& folder, double value) : run(folder / "run"), safetensors(folder / "w.safetensors") {
    LoadedConfig loaded = config();
    Transformer model(loaded.config.model);
    model.allocate(DType::float64, 1);
    model.parameters().named_tensors().front().value.as<double>()[changed_element] = value;
    save_weights(model.parameters(), safetensors);
    std::filesystem::create_directories(checkpoints_path(run));
    const std::string text = to_toml(loaded.config, loaded.origins);
    save_checkpoint(run, {model.parameters(), nullptr, RunState{}, text, ""}, 1);
    write_run_config(run, text);
  }

  static LoadedConfig config() {
    LoadedConfig loaded = parse_config(
        "[model]\nvocab_size = 20\nd_model = 8\nn_layers = 1\nn_heads = 2\nd_ff = 12\n[data]\nseq_len = 8\n", "a.toml");
    complete_config(loaded, nullptr);
    return loaded;
  }

  std::string run;
  std::string safetensors;
};

std::string load(const std::string& init, DType dtype) {
  const LoadedConfig loaded = Source::config();
  Transformer model(loaded.config.model);
  model.allocate(dtype, 2);
  return load_initial_weights(model, loaded, TokenFile{}, init);
}

}  // namespace

TEST_CASE("a float64 weight beyond float32 is said not to fit, and taken by a float64 model") {
  const TemporaryFolder folder;
  const Source source(folder, -1e300);
  const std::string expected =
      ": model.embed_tokens.weight holds a value that does not fit float32; found -1e+300 at element 3; expected at "
      "most "
      "3.4e38 in size; train.dtype = \"float64\" takes it";
  CHECK(message_of(Fault::input, [&] { load(source.safetensors, DType::float32); }) == source.safetensors + expected);
  CHECK(message_of(Fault::input, [&] { load(source.run, DType::float32); }) ==
        checkpoint_path(source.run, 0) + expected);
  CHECK_CONTAINS(load(source.safetensors, DType::float64), source.safetensors + " (sha256 ");
  CHECK_CONTAINS(load(source.run, DType::float64), checkpoint_path(source.run, 0) + " (sha256 ");
}

TEST_CASE("a weight that is not finite is named, whatever the types") {
  const TemporaryFolder folder;
  const Source source(folder, -std::numeric_limits<double>::infinity());
  for (const DType dtype : {DType::float32, DType::float64}) {
    for (const std::string& init : {source.safetensors, source.run}) {
      CHECK_CONTAINS(message_of(Fault::input, [&] { load(init, dtype); }),
                     ": model.embed_tokens.weight holds a value that is not finite; found -inf at element 3; expected "
                     "finite weights");
    }
  }
}
