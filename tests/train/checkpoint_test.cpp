#include "train/checkpoint.h"

#include "core/error.h"
#include "core/rng.h"
#include "tests/support/limits.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"
#include "train/run_folder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace minillm;
using namespace minillm::test;

namespace {

void declare_model(ParameterStore& store, int64_t d = 7) {
  store.declare("model.embed_tokens.weight", {11, d}, Init::normal(0.5));
  store.declare_merged("model.layers.0.self_attn.qkv_proj.weight",
                       {{"model.layers.0.self_attn.q_proj.weight", 7, Init::normal(0.5)},
                        {"model.layers.0.self_attn.k_proj.weight", 3, Init::normal(0.5)},
                        {"model.layers.0.self_attn.v_proj.weight", 3, Init::normal(0.5)}},
                       d);
  store.declare("model.norm.weight", {7}, Init::constant(1));
  store.declare("model.norm.scale", Shape{}, Init::constant(3));
}

template <class T>
void fill(const Tensor& tensor, RandomStream stream) {
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    tensor.as<T>()[i] = static_cast<T>(stream.normal());
  }
}

std::string bits_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data), tensor.bytes()};
}

/// A model with an optimizer after `steps` updates.
struct Training {
  explicit Training(DType dtype, uint64_t seed = 1, int64_t d = 7) {
    declare_model(store, d);
    store.allocate(dtype);
    store.initialize(seed);
    optimizer.emplace(store, OptimConfig{});
  }

  void advance(int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) {
      for (Parameter& parameter : store.parameters()) {
        const RandomStream stream(random_key(static_cast<uint64_t>(state.step), "gradient", parameter.name));
        if (store.dtype() == DType::float64) {
          fill<double>(parameter.grad, stream);
        } else {
          fill<float>(parameter.grad, stream);
        }
      }
      optimizer->step(0.01);
      ++state.step;
    }
  }

  CheckpointContents contents() { return {store, &*optimizer, state, "[train]\nsteps = 5\n", tokenizer}; }

  ParameterStore store;
  std::optional<AdamW> optimizer;
  RunState state;
  std::string tokenizer = std::string("piece\0\xff", 7);
};

bool same_bits(const Training& a, const Training& b) {
  return bits_of(a.store.weights()) == bits_of(b.store.weights()) &&
         bits_of(a.optimizer->m()) == bits_of(b.optimizer->m()) &&
         bits_of(a.optimizer->v()) == bits_of(b.optimizer->v()) && a.optimizer->steps() == b.optimizer->steps();
}

struct Run : TemporaryFolder {
  Run() : TemporaryFolder(fast_temporary_parent()) {
    create_run_folder({.folder = folder});
    write_run_config(folder, "[train]\n");
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(checkpoints_path(folder))) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string folder = path() + "/run";
};

void load(const Checkpoint& checkpoint, Training& into) {
  checkpoint.load_weights(into.store);
  checkpoint.load_optimizer(into.store, *into.optimizer);
  into.state = checkpoint.state();
}

}  // namespace

TEST_CASE("a checkpoint brings back weights, moments and state bit for bit, and training goes on as if never stopped") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    Run run;
    Training training(dtype);
    training.advance(3);
    training.state.integers = {{"cursor", 1234567890123}, {"seed", -1}};
    training.state.numbers = {{"best_val_loss", NAN}, {"first_loss", 0.1 + 0.2}, {"limit", INFINITY}};
    training.state.texts = {{"random_streams", "init, order, dropout"}, {"empty", ""}};
    CHECK(save_checkpoint(run.folder, training.contents(), 2) == run.folder + "/checkpoints/step_000003.h5");

    const std::optional<Checkpoint> checkpoint = newest_checkpoint(run.folder);
    REQUIRE(checkpoint);
    CHECK(checkpoint->step() == 3);
    CHECK(checkpoint->config() == "[train]\nsteps = 5\n");
    CHECK(checkpoint->tokenizer() == training.tokenizer);
    CHECK(checkpoint->state().integers == training.state.integers);
    CHECK(checkpoint->state().texts == training.state.texts);
    CHECK(std::isnan(checkpoint->state().numbers.at("best_val_loss")));
    CHECK(checkpoint->state().numbers.at("first_loss") == 0.1 + 0.2);
    CHECK(checkpoint->state().numbers.at("limit") == INFINITY);

    Training resumed(dtype, 99);
    CHECK_FALSE(same_bits(resumed, training));
    load(*checkpoint, resumed);
    CHECK(same_bits(resumed, training));
    resumed.advance(4);
    training.advance(4);
    CHECK(same_bits(resumed, training));
  }
}

TEST_CASE("the newest checkpoints are kept, and best beside them") {
  Run run;
  Training training(DType::float32);
  for (int i = 0; i < 5; ++i) {
    training.advance(1);
    save_checkpoint(run.folder, training.contents(), 2);
    if (i == 1) {
      save_best_checkpoint(run.folder, training.contents());
    }
  }
  CHECK(run.files() == std::vector<std::string>{"best.h5", "step_000004.h5", "step_000005.h5"});
  CHECK(checkpoint_steps(run.folder) == std::vector<int64_t>{4, 5});
  CHECK(open_checkpoint(run.folder).step() == 5);
  CHECK(open_checkpoint(run.folder, "last").step() == 5);
  CHECK(open_checkpoint(run.folder, "best").step() == 2);
  CHECK(open_checkpoint(run.folder, "4").step() == 4);
  CHECK(open_checkpoint(run.folder + "/checkpoints/best.h5").step() == 2);
  CHECK(message_of([&] { open_checkpoint(run.folder, "3"); }) ==
        run.folder + ": there is no checkpoint 3; the run has the checkpoints 4, 5, best");
  CHECK(message_of([&] { open_checkpoint(run.folder, "newest"); }) ==
        "--checkpoint: no such checkpoint; found newest; expected last, best or a number of steps");
}

TEST_CASE("a run without checkpoints is told apart from no run") {
  Run run;
  CHECK_FALSE(newest_checkpoint(run.folder));
  CHECK(message_of([&] { open_checkpoint(run.folder); }) ==
        run.folder + ": no valid checkpoint; the run has no checkpoint");
  CHECK(message_of([&] { open_checkpoint(run.folder + "x"); }).find("there is no such run") != std::string::npos);
}

TEST_CASE("a cut or bit-flipped newest checkpoint is skipped for the one before, and never pushes it out") {
  Run run;
  Training training(DType::float32);
  training.advance(1);
  save_checkpoint(run.folder, training.contents(), 2);
  training.advance(1);
  const std::string newest = save_checkpoint(run.folder, training.contents(), 2);
  const std::string whole = read_file(newest);
  std::vector<size_t> lengths = {0, whole.size() - 1};
  for (size_t i = 1; i < 16; ++i) {
    lengths.push_back(whole.size() * i / 16);
  }
  for (const size_t length : lengths) {
    std::ofstream(newest, std::ios::binary) << whole.substr(0, length);
    CAPTURE(length);
    REQUIRE(newest_checkpoint(run.folder));
    CHECK(newest_checkpoint(run.folder)->step() == 1);
    CHECK(message_of([&] { Checkpoint{newest}; }).starts_with(newest));
  }
  RandomStream positions(random_key(1, "positions"));
  for (int i = 0; i < 40; ++i) {
    std::string flipped = whole;
    const size_t at = positions.below(whole.size());
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << positions.below(8)));
    std::ofstream(newest, std::ios::binary) << flipped;
    const std::optional<Checkpoint> found = newest_checkpoint(run.folder);
    CAPTURE(at);
    REQUIRE(found);
    CHECK(found->step() == 1);
  }
  std::ofstream(newest, std::ios::binary) << whole.substr(0, 1000);
  Training resumed(DType::float32, 5);
  load(*newest_checkpoint(run.folder), resumed);
  std::filesystem::rename(newest, run.folder + "/checkpoints/step_000009.h5");  // damaged, and later than what follows
  resumed.advance(1);
  save_checkpoint(run.folder, resumed.contents(), 1);
  CHECK(run.files() == std::vector<std::string>{"step_000002.h5", "step_000009.h5"});
  CHECK(newest_checkpoint(run.folder)->step() == 2);
}

TEST_CASE("other files in the folder are never taken for checkpoints") {
  Run run;
  Training training(DType::float32);
  training.advance(1);
  save_checkpoint(run.folder, training.contents(), 2);
  for (const char* name : {"step_000002.h5.tmp.999999", "step_x.h5", "step_.h5", "step_000003.h5x", "step_-00004.h5"}) {
    std::ofstream(checkpoints_path(run.folder) + "/" + name) << "x";
  }
  CHECK(checkpoint_steps(run.folder) == std::vector<int64_t>{1});
  clean_checkpoints(run.folder);
  CHECK_FALSE(std::filesystem::exists(checkpoints_path(run.folder) + "/step_000002.h5.tmp.999999"));
  CHECK(std::filesystem::exists(checkpoints_path(run.folder) + "/step_x.h5"));
}

TEST_CASE("a model of other shapes or names is refused with every difference, and stays as it is") {
  Run run;
  Training training(DType::float32);
  training.advance(1);
  save_checkpoint(run.folder, training.contents(), 2);
  const Checkpoint checkpoint = open_checkpoint(run.folder);

  ParameterStore other;
  other.declare("model.embed_tokens.weight", {11, 8}, Init::normal(0.5));
  other.declare("model.norm.weight", {7}, Init::constant(1));
  other.declare("lm_head.weight", {11, 8}, Init::normal(0.5));
  other.allocate(DType::float32);
  other.initialize(1);
  const std::string before = bits_of(other.weights());
  CHECK(message_of([&] { checkpoint.load_weights(other); }) ==
        checkpoint.path() +
            ": /weights does not fit the model:\n"
            "  model.embed_tokens.weight: [11, 7] in the file, [11, 8] in the model\n"
            "  lm_head.weight: missing in the file, the model has [11, 8]\n"
            "  model.layers.0.self_attn.k_proj.weight: [3, 7] in the file, not in the model\n"
            "  model.layers.0.self_attn.q_proj.weight: [7, 7] in the file, not in the model\n"
            "  model.layers.0.self_attn.v_proj.weight: [3, 7] in the file, not in the model\n"
            "  model.norm.scale: [] in the file, not in the model");
  CHECK(bits_of(other.weights()) == before);
}

TEST_CASE("weights are converted between float32 and float64, moments are not") {
  Run run;
  Training training(DType::float64);
  training.advance(2);
  save_checkpoint(run.folder, training.contents(), 2);
  const Checkpoint checkpoint = open_checkpoint(run.folder);
  Training narrow(DType::float32);
  checkpoint.load_weights(narrow.store);
  for (int64_t i = 0; i < training.store.weights().numel(); ++i) {
    CHECK(narrow.store.weights().at(i) == static_cast<double>(static_cast<float>(training.store.weights().at(i))));
  }
  CHECK(message_of([&] { checkpoint.load_optimizer(narrow.store, *narrow.optimizer); }).find("wrong type") !=
        std::string::npos);
}

TEST_CASE("a file with weights only serves evaluation but no resume") {
  Run run;
  Training training(DType::float32);
  save_checkpoint(run.folder, {training.store, nullptr, training.state, "", ""}, 2);
  const Checkpoint checkpoint = open_checkpoint(run.folder);
  CHECK_FALSE(checkpoint.has_optimizer());
  CHECK(checkpoint.step() == 0);
  CHECK(checkpoint.tokenizer().empty());
  Training other(DType::float32, 4);
  checkpoint.load_weights(other.store);
  CHECK(bits_of(other.store.weights()) == bits_of(training.store.weights()));
  CHECK(message_of([&] { checkpoint.load_optimizer(other.store, *other.optimizer); }).find("--init") !=
        std::string::npos);
}

TEST_CASE("what a run is good for depends on its newest valid checkpoint") {
  const Run run;
  Training training(DType::float32);
  CHECK(awaits_first_checkpoint(run.folder));
  CHECK(continuation_of(run.folder) == Continuation::resume);
  save_checkpoint(run.folder, {training.store, nullptr, training.state, "", ""}, 2);
  CHECK_FALSE(awaits_first_checkpoint(run.folder));
  CHECK(continuation_of(run.folder) == Continuation::weights);
  training.advance(1);
  const std::string whole = save_checkpoint(run.folder, training.contents(), 2);
  CHECK(continuation_of(run.folder) == Continuation::resume);
  write_file(whole, "damaged");
  CHECK(continuation_of(run.folder) == Continuation::weights);
  write_file(checkpoint_path(run.folder, 0), "damaged");
  CHECK_FALSE(awaits_first_checkpoint(run.folder));
  CHECK(continuation_of(run.folder) == Continuation::none);
  CHECK(message_of([&] { open_checkpoint(run.folder); }).find("no valid checkpoint") != std::string::npos);
  std::filesystem::remove_all(checkpoints_path(run.folder));
  CHECK_FALSE(awaits_first_checkpoint(run.folder));
  CHECK(continuation_of(run.folder) == Continuation::none);
}

TEST_CASE("a disk that fills is a work error that leaves the older checkpoints and nothing else") {
  Run run;
  Training training(DType::float32);
  training.advance(1);
  save_checkpoint(run.folder, training.contents(), 1);
  training.advance(1);
  {
    const FileSizeLimit full(3000);
    message_of(Fault::work, [&] { save_checkpoint(run.folder, training.contents(), 1); });
  }
  CHECK(run.files() == std::vector<std::string>{"step_000001.h5"});
  CHECK(newest_checkpoint(run.folder)->step() == 1);
}
