#include "train/imported_run.h"

#include "data/sha256.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"
#include "train/checkpoint.h"
#include "train/config_file.h"
#include "train/loaded_run.h"
#include "train/run_folder.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <limits>

using namespace minillm;
using namespace minillm::test;
namespace fs = std::filesystem;

namespace {

/// A GPT-2 of llm.c with 1 layer of 4 channels: value i is i / 1000, but for the one at `index`.
std::string llmc_model(size_t index = 0, float value = 0) {
  const std::array<int32_t, 8> header = {20240326, 3, 2, 3, 1, 2, 4, 5};
  std::string bytes(1024, '\0');
  std::memcpy(bytes.data(), header.data(), sizeof header);
  for (size_t i = 0; i < 4 * (5 + 2 + 61 + 2); ++i) {
    const float number = i == index ? value : static_cast<float>(i) / 1000;
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return bytes;
}

std::string refusal(const ImportRequest& request) {
  return message_of(Fault::input, [&] { import_run(request); });
}

}  // namespace

TEST_CASE("an imported model is a run with weights alone, whose config says where it comes from") {
  TemporaryFolder folder;
  const std::string file = folder.write("small.bin", llmc_model());
  const ImportedRun run = import_run({.file = file, .out = folder / "run/"});
  CHECK(run.tensors == 20);
  CHECK(run.config.run.name == "small");
  const std::string config = read_file(folder / "run/config.toml");
  CHECK_CONTAINS(config, "\nd_model = 4                              # " + file + "\n");
  CHECK_CONTAINS(config, "\nhead_dim = 2                             # derived\n");
  const LoadedRun loaded = load_run(folder / "run", "last");
  CHECK(loaded.step == 0);
  CHECK(loaded.tokenizer == nullptr);
  CHECK(loaded.config.data.seq_len == 2);
  CHECK(loaded.model->parameters().named_tensors().front().value.at(11) == static_cast<double>(0.011F));
  const Checkpoint checkpoint(run.checkpoint);
  CHECK_FALSE(checkpoint.has_optimizer());
  CHECK(checkpoint.config() == config);
  CHECK(checkpoint.state().texts.at("init") == file + " (sha256 " + sha256_hex(llmc_model()) + ")");
  const LoadedConfig read_back = load_config(folder / "run/config.toml");
  CHECK(diff(read_back.config, run.config).empty());
  CHECK(std::distance(fs::directory_iterator(folder / "run"), {}) == 2);
  CHECK(std::distance(fs::directory_iterator(folder / "run/checkpoints"), {}) == 1);
}

TEST_CASE("what is printed ends in commands that fit the folder's name") {
  TemporaryFolder folder;
  const std::string file = folder.write("small.bin", llmc_model());
  const std::string text = import_run({.file = file, .out = folder / "a b/"}).to_text();
  CHECK_CONTAINS(text,
                 file + ": llm.c, GPT-2, version 3 (float32)\n1 layers, d_model 4, 2 heads, d_ff 16, 2 positions");
  CHECK_CONTAINS(text, "20 tensors, read back and equal to the file's bit for bit\n");
  CHECK_CONTAINS(text, "left out: 2 rows of padding behind the vocabulary\n");
  CHECK_CONTAINS(text,
                 fmt::format("\n  minillm train '{0}/config.toml' --init '{0}' --out '{0}_tuned' data.path=data.h5",
                             folder / "a b"));
}

TEST_CASE("weights that are not finite are refused by name, and no folder is made") {
  TemporaryFolder folder;
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    const std::string file = folder.write("small.bin", llmc_model(49, value));  // wte 20, wpe 8, ln1 8, then qkv
    const std::string message = refusal({.file = file, .out = folder / "run"});
    CHECK_CONTAINS(message, "model.layers.0.self_attn.q_proj.weight is not finite; such weights are not imported");
    CHECK_CONTAINS(message, "at element 13");
    CHECK_FALSE(fs::exists(folder / "run"));
  }
  // In the padding, which is no weight, anything may stand.
  const std::string file = folder.write("small.bin", llmc_model(12, std::numeric_limits<float>::quiet_NaN()));
  import_run({.file = file, .out = folder / "run"});
}

TEST_CASE("an existing run is refused, and moved aside by force; what is wrong with the file is told first") {
  TemporaryFolder folder;
  const std::string file = folder.write("small.bin", llmc_model());
  folder.write("run/config.toml", "mine");
  CHECK(refusal({.file = file, .out = folder / "run"}) ==
        folder / "run: the run exists already; choose another folder with --out, or move this one to " +
            (folder / "run.old with --force"));
  CHECK(read_file(folder / "run/config.toml") == "mine");
  const std::string cut = folder.write("cut.bin", llmc_model().substr(0, 2000));
  CHECK_CONTAINS(refusal({.file = cut, .out = folder / "run", .force = true}), "shorter than its header says");
  CHECK(read_file(folder / "run/config.toml") == "mine");
  import_run({.file = file, .out = folder / "run", .force = true});
  CHECK(read_file(folder / "run.old/config.toml") == "mine");
  CHECK(load_run(folder / "run", "last").config.model.d_model == 4);
}

TEST_CASE("an import that was killed before its config is no run, and can be done again") {
  TemporaryFolder folder;
  const std::string file = folder.write("small.bin", llmc_model());
  import_run({.file = file, .out = folder / "run"});
  fs::remove(folder / "run/config.toml");
  CHECK_THROWS_AS(load_run(folder / "run", "last"), Error);
  import_run({.file = file, .out = folder / "run"});
  CHECK(load_run(folder / "run", "last").step == 0);
}

TEST_CASE("a file's name of any bytes leaves a config that can be read") {
  TemporaryFolder folder;
  for (const std::string name : {"line\nend.bin", "\xff\xfe.bin", "a'\"\\b.bin"}) {
    CAPTURE(name);
    const std::string file = folder.write(name, llmc_model());
    const std::string out = folder / std::to_string(name.size());
    import_run({.file = file, .out = out});
    CHECK(load_config(config_path(out)).config.model.d_model == 4);
    CHECK(load_run(out, "last").step == 0);
  }
}
