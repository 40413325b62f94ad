#include "formats/weight_type.h"

#include "core/error.h"
#include "core/half.h"
#include "core/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace minillm {

namespace {

constexpr size_t values_of_q8_0 = 32;

template <class T>
void append_bytes(std::string& bytes, T value) {
  std::array<char, sizeof value> raw;
  std::memcpy(raw.data(), &value, sizeof value);
  bytes.append(raw.data(), raw.size());
}

std::string encode_f32(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

void round_f32(std::span<float> /*values*/) {}

std::string encode_f16(std::span<const float> values) {
  std::string bytes;
  bytes.reserve(values.size() * 2);
  for (const float value : values) {
    append_bytes(bytes, float_to_half(value));
  }
  return bytes;
}

void round_f16(std::span<float> values) {
  for (float& value : values) {
    value = half_to_float(float_to_half(value));
  }
}

/// The scale of one block, as it is stored.
uint16_t scale_of(std::span<const float> block) {
  float largest = 0;
  for (const float value : block) {
    largest = std::max(largest, std::abs(value));
  }
  return float_to_half(largest / 127);
}

int8_t code_of(float value, float scale) {
  const double code = scale > 0 ? std::nearbyint(static_cast<double>(value) / static_cast<double>(scale)) : 0;
  return static_cast<int8_t>(std::clamp(code, -127.0, 127.0));
}

std::string encode_q8_0(std::span<const float> values) {
  std::string bytes;
  bytes.reserve(values.size() + values.size() / 16);
  for (size_t first = 0; first < values.size(); first += values_of_q8_0) {
    const std::span<const float> block = values.subspan(first, values_of_q8_0);
    const uint16_t scale = scale_of(block);
    append_bytes(bytes, scale);
    for (const float value : block) {
      bytes += static_cast<char>(code_of(value, half_to_float(scale)));
    }
  }
  return bytes;
}

void round_q8_0(std::span<float> values) {
  for (size_t first = 0; first < values.size(); first += values_of_q8_0) {
    const std::span<float> block = values.subspan(first, values_of_q8_0);
    const float scale = half_to_float(scale_of(block));
    for (float& value : block) {
      value = scale * static_cast<float>(code_of(value, scale));
    }
  }
}

constexpr WeightType weight_types[] = {
    {"f32", 0, 0, 1, 4, encode_f32, round_f32},
    {"f16", 1, 1, 1, 2, encode_f16, round_f16},
    {"q8_0", 8, 7, values_of_q8_0, 2 + values_of_q8_0, encode_q8_0, round_q8_0},
};

}  // namespace

std::vector<std::string> weight_type_names() {
  std::vector<std::string> names;
  for (const WeightType& type : weight_types) {
    names.emplace_back(type.name);
  }
  return names;
}

const WeightType& weight_type(const std::string& name) {
  for (const WeightType& type : weight_types) {
    if (type.name == name) {
      return type;
    }
  }
  fail_input(
      {.where = "--weights", .what = "unknown type " + printable(name), .expected = join(weight_type_names(), " or ")});
}

void round_matrices(const Transformer& model, const WeightType& type) {
  for (const NamedTensor& tensor : model.parameters().named_tensors()) {
    const Shape& shape = tensor.value.shape;
    if (shape.rank() < 2 || type.gguf_type == 0) {
      continue;
    }
    if (shape[-1] % type.block != 0) {
      fail_input({.where = "--weights",
                  .what = fmt::format("{} cannot be written as {}", tensor.name, type.name),
                  .found = fmt::format("rows of {} values", shape[-1]),
                  .expected = fmt::format("a multiple of {}", type.block)});
    }
    const Buffer values(shape, DType::float32);
    copy_values(tensor.value, values.tensor());
    float* first = values.tensor().as<float>();
    const std::span<float> all(first, static_cast<size_t>(values.tensor().numel()));
    type.round(all);
    if (!std::all_of(all.begin(), all.end(), [](float value) { return std::isfinite(value); })) {
      fail_input({.where = "--weights",
                  .what = fmt::format("{} has numbers that are too large for {}", tensor.name, type.name),
                  .expected = "magnitudes below 65,520"});
    }
    copy_values(values.tensor(), tensor.value);
  }
}

}  // namespace minillm
