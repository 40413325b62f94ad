#include "train/imported_run.h"

#include "core/memory.h"
#include "data/sha256.h"
#include "tests/support/limits.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"
#include "train/checkpoint.h"
#include "train/config_file.h"
#include "train/loaded_run.h"
#include "train/run_folder.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <array>
#include <csignal>
#include <cstring>
#include <limits>
#include <stdexcept>

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
  folder.write("run/metrics.jsonl", "");
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

TEST_CASE("an import never moves its own input, and what fails leaves everything as it was") {
  TemporaryFolder folder;
  const std::string file = folder.write("run/small.bin", llmc_model());
  CHECK_CONTAINS(refusal({.file = file, .out = folder / "run", .force = true}), "lies in the folder it would replace");
  folder.write("run/config.toml", "mine");
  folder.write("run/metrics.jsonl", "");
  CHECK_CONTAINS(refusal({.file = file, .out = folder / "run", .force = true}), "lies in the folder it would replace");
  CHECK(folder.names() == std::vector<std::string>{"run"});
  CHECK(read_file(file) == llmc_model());
  // A limit on the size of files stands for a full disk.
  const std::string outside = folder.write("small.bin", llmc_model());
  std::string moved;
  std::string made;
  {
    const FileSizeLimit full(600);
    moved = message_of([&] { import_run({.file = outside, .out = folder / "run/.", .force = true}); });
    made = message_of([&] { import_run({.file = outside, .out = folder / "new"}); });
  }
  CHECK_CONTAINS(moved, "cannot be written");
  CHECK_CONTAINS(made, "cannot be written");
  CHECK(folder.names() == std::vector<std::string>{"run", "small.bin"});
  CHECK(read_file(folder / "run/config.toml") == "mine");
}

TEST_CASE("a limit ends with its scope, also when something escapes") {
  const auto size_limit = [] {
    struct rlimit limit = {};
    getrlimit(RLIMIT_FSIZE, &limit);
    return limit.rlim_cur;
  };
  const auto is_ignored = [] {
    struct sigaction action = {};
    sigaction(SIGXFSZ, nullptr, &action);
    return action.sa_handler == SIG_IGN;
  };
  const rlim_t before = size_limit();
  std::signal(SIGXFSZ, SIG_DFL);  // whatever the caller of the tests left
  try {
    const FileSizeLimit full(600);
    CHECK(size_limit() == 600);
    CHECK(is_ignored());
    throw std::runtime_error("escapes");
  } catch (const std::runtime_error&) {
    CHECK(size_limit() == before);
    CHECK_FALSE(is_ignored());
  }
}

TEST_CASE("a model larger than any config allows, or than the memory, is refused before anything is made of it") {
  TemporaryFolder folder;
  const auto sparse = [&](int32_t layers, int32_t channels) {
    const std::string file = folder.write("m.bin", llmc_model().substr(0, 1024));
    const std::array<int32_t, 8> header = {20240326, 3, 2, 3, layers, 1, channels, 3};
    std::string bytes(1024, '\0');
    std::memcpy(bytes.data(), header.data(), sizeof header);
    write_file(file, bytes);
    const uint64_t C = static_cast<uint64_t>(channels);
    fs::resize_file(file, 1024 + 4 * C * (3 + 2 + static_cast<uint64_t>(layers) * (12 * C + 13) + 2));
    return file;
  };
  CHECK(refusal({.file = sparse(10001, 1), .out = folder / "run"}) ==
        folder / "m.bin: the model is larger than minillm's can be: num_layers; found 10001; expected at most 10000");
  if (physical_memory() < 4e11) {
    CHECK_CONTAINS(refusal({.file = sparse(1, 100000), .out = folder / "run"}),
                   "m.bin: the weights, and the largest tensor beside them to be compared, do not fit this machine's "
                   "memory; found 640 GB; expected at most ");
  }
  CHECK_FALSE(fs::exists(folder / "run"));
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
