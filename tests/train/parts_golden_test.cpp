// Every part alone, in double, against PyTorch: output and all gradients of tests/golden/parts.json.

#include "nn/block.h"
#include "nn/position.h"
#include "tests/golden/golden_weights.h"
#include "train/config_file.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

using namespace minillm;
using nlohmann::json;

namespace {

constexpr double part_bar = 1e-12;  // relative to the tensor's largest element; rounding alone is below 1e-14
const Shape input_shape = {2, 5, 8};

json read_parts() {
  std::ifstream file(MINILLM_SOURCE_DIR "/tests/golden/parts.json");
  REQUIRE(file.good());
  return json::parse(file);
}

ModelConfig config_of(const json& file, const json& part) {
  auto overrides = file["config"].get<std::vector<std::string>>();
  for (const json& override_text : part["overrides"]) {
    overrides.push_back(override_text.get<std::string>());
  }
  Config config = parse_config("", "golden", overrides).config;
  derive(config.model, 0, 0);
  return config.model;
}

/// Two blocks between the ends of their stream.
class Stack final : public Module {
 public:
  Stack(const ModelConfig& config, const Scope& scope, const RopeTable& rope)
      : Module(scope),
        ends_(make_stream_ends(config, scope / "stream")),
        first_(config, scope / "layers.0", rope, 0),
        second_(config, scope / "layers.1", rope, 1) {}

  Var forward(Var x) const {
    Stream stream = ends_->enter(x);
    first_.forward(stream);
    second_.forward(stream);
    return ends_->leave(stream);
  }

 private:
  std::unique_ptr<StreamEnds> ends_;
  Block first_;
  Block second_;
};

/// A part by the name of its kind, and how it is run.
struct BuiltPart {
  std::unique_ptr<Module> module;
  std::function<Var(Var)> forward;
};

template <class Part>
BuiltPart built(std::unique_ptr<Part> part) {
  const Part* pointer = part.get();
  return {std::move(part), [pointer](Var x) { return pointer->forward(x); }};
}

BuiltPart built_positions(const ModelConfig& config, const Scope& scope) {
  auto part = std::make_unique<PositionEmbedding>(config, scope);
  PositionEmbedding* pointer = part.get();
  return {std::move(part), [pointer](Var x) {
            pointer->allocate(x.dtype());
            return pointer->add_to(x);
          }};
}

BuiltPart build(const std::string& kind, const ModelConfig& config, const Scope& root, const RopeTable& rope) {
  if (kind == "ffn") {
    return built(make_ffn(config, root / "mlp"));
  }
  if (kind == "norm") {
    return built(make_norm(config, root / "norm", config.d_model));
  }
  if (kind == "position") {
    return built_positions(config, root / "embed_positions");
  }
  if (kind == "mixer") {
    return built(make_mixer(config, root, rope, 0));
  }
  REQUIRE(kind == "stack");
  return built(std::make_unique<Stack>(config, root, rope));
}

Buffer golden_tensor(const std::string& stream, double factor) {
  Buffer buffer(input_shape, DType::float64);
  for (int64_t i = 0; i < input_shape.numel(); ++i) {
    buffer.tensor().as<double>()[i] = factor * golden::uniform(stream, static_cast<uint64_t>(i));
  }
  return buffer;
}

void set_part_weights(ParameterStore& store, bool zero_centered) {
  for (const NamedTensor& tensor : store.named_tensors()) {
    for (int64_t i = 0; i < tensor.value.numel(); ++i) {
      tensor.value.as<double>()[i] = golden::part_value(tensor.name, static_cast<uint64_t>(i), zero_centered);
    }
  }
}

/// The largest difference as a share of the largest expected value.
double difference(const Tensor& found, const json& expected) {
  REQUIRE(found.numel() == static_cast<int64_t>(expected.size()));
  double largest = 0;
  double scale = 1e-300;
  for (int64_t i = 0; i < found.numel(); ++i) {
    const double value = expected[static_cast<size_t>(i)].get<double>();
    largest = std::max(largest, std::abs(found.at(i) - value));
    scale = std::max(scale, std::abs(value));
  }
  return largest / scale;
}

void check_part(const json& file, const json& part, const TapeOptions& options) {
  const ModelConfig config = config_of(file, part);
  ParameterStore store;
  RopeTable rope(config);
  const BuiltPart built_part = build(part["kind"], config, Scope(store, ""), rope);
  store.allocate(DType::float64);
  rope.allocate(DType::float64);
  set_part_weights(store, config.norm == "zero_centered_rmsnorm");
  const Buffer x = golden_tensor("x", 2);
  const Buffer dy = golden_tensor("dy", 1);
  Tape tape(options);
  Var leaf = tape.variable(x.tensor());
  Var y = built_part.forward(leaf);
  REQUIRE(y.shape() == input_shape);
  CHECK(difference(y.value(), part["y"]) < part_bar);
  tape.backward(sum_all(mul(y, tape.constant(dy.tensor()))));
  store.finish_gradients();
  CHECK(difference(leaf.grad(), part["dx"]) < part_bar);
  size_t compared = 0;
  for (const NamedTensor& tensor : store.named_tensors()) {
    CAPTURE(tensor.name);
    if (tensor.is_buffer) {
      continue;
    }
    ++compared;
    REQUIRE(part["gradients"].contains(tensor.name));
    CHECK(difference(tensor.grad, part["gradients"][std::string(tensor.name)]) < part_bar);
  }
  CHECK(compared == part["gradients"].size());
}

}  // namespace

TEST_CASE("every part gives PyTorch's output and gradients, fused and composed") {
  const json file = read_parts();
  CHECK(file["parts"].size() >= 59);
  for (const json& part : file["parts"]) {
    CAPTURE(part["name"].get<std::string>());
    check_part(file, part, {});
    check_part(file, part, {.ops = Ops::composed});
  }
}
